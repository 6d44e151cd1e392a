#include "headrace/pipeline/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headrace/pipeline/plan/index/chosen_numbers.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/ragged_batch.h"

namespace headrace {
namespace {

std::string describe_ends(const MixOptions& options) {
  switch (options.end) {
    case MixEnd::kFirstEnds: return "first ends";
    case MixEnd::kAllSeen: return "all seen";
  }
  return {};
}

struct DescribeHow {
  const char* element = "record";

  std::string operator()(const InSequence&) const { return "concatenate"; }
  std::string operator()(const InterleaveOptions& options) const {
    return fmt::format("interleave of blocks of {}", options.block);
  }
  std::string operator()(const MixOptions& options) const {
    if (options.weights.empty()) return fmt::format("mix(seed={}), each {} once", options.seed, element);
    return fmt::format("mix(seed={}, weights {}, {})", options.seed, fmt::join(options.weights, " : "),
                       describe_ends(options));
  }
  std::string operator()(const UnbatchRows& unbatch) const { return fmt::format("unbatch of {}", unbatch.rows); }
};

std::string describe_batch(const BatchOptions& batch) { return describe(Stage{BatchStage{.options = batch}}); }

std::string describe_part(const CombinedPart& part) {
  std::string text = fmt::format("{} records", part.records);
  for (const Stage& stage : part.stages) text += " | " + describe(stage);
  if (!part.batches) return text;
  if (part.batches->combined == nullptr) text += " | " + describe_batch(part.batches->options);
  for (const Stage& stage : part.batches->stages) text += " | " + describe(stage);
  return text;
}

struct DescribeStage {
  std::string operator()(const SourceStage& stage) const {
    const SourceInfo& info = stage.source->info();
    return fmt::format("source({}, {} records{})", info.name, info.records, info.resident ? ", in memory" : "");
  }
  std::string operator()(const DecodeStage& stage) const { return describe(stage); }
  std::string operator()(const MapStage& stage) const {
    std::string text;
    for (const Operation& operation : stage.operations) {
      text += (text.empty() ? "" : " | ") + describe(operation);
    }
    return text;
  }
  std::string operator()(const ShuffleStage& stage) const {
    return fmt::format("shuffle(seed={}{})", stage.options.seed,
                       stage.options.each_epoch_anew ? "" : ", the same every epoch");
  }
  std::string operator()(const RepeatStage& stage) const { return fmt::format("repeat({})", stage.times); }
  std::string operator()(const TakeStage& stage) const { return fmt::format("take({})", stage.count); }
  std::string operator()(const SkipStage& stage) const { return fmt::format("skip({})", stage.count); }
  std::string operator()(const SelectStage& stage) const { return stage.chosen->describe(); }
  std::string operator()(const ShardStage& stage) const {
    return fmt::format("shard({} of {})", stage.index, stage.count);
  }
  std::string operator()(const WithoutShardStage& stage) const {
    return fmt::format("without_shard({} of {})", stage.index, stage.count);
  }
  std::string operator()(const FilterStage& stage) const { return stage.selection->describe(); }
  std::string operator()(const ShuffleWindowStage& stage) const {
    return fmt::format("shuffle_window({}, seed={}{})", stage.options.size, stage.options.seed,
                       stage.options.each_epoch_anew ? "" : ", the same every epoch");
  }
  std::string operator()(const ShardFilesStage& stage) const {
    return fmt::format("shard({} of {}, by file: {} files)", stage.index, stage.count, stage.ranges.size());
  }
  std::string operator()(const CombineStage& stage) const {
    const Combination& combination = *stage.combination;
    const bool of_batches = combination.of_batches();
    std::string text = of_batches ? "whole batches, " : "";
    text += std::visit(DescribeHow{of_batches ? "batch" : "record"}, combination.how) + ":";
    for (const CombinedPart& part : combination.parts) text += fmt::format(" [{}]", describe_part(part));
    return text;
  }
  std::string operator()(const EnumerateStage& stage) const {
    return fmt::format("enumerate('{}')", stage.options.field);
  }
  std::string operator()(const CacheStage& stage) const {
    return fmt::format("cache({})", stage.cache->describe());
  }
  std::string operator()(const BatchStage& stage) const {
    if (stage.buckets != nullptr) return stage.buckets->describe();
    return fmt::format("{}({}{}{})", stage.ragged != nullptr ? "ragged_batch" : "batch", stage.options.global,
                       stage.options.remainder == Remainder::kDrop ? ", drop remainder" : "",
                       stage.ragged != nullptr ? stage.ragged->describe() : "");
  }
  std::string operator()(const PrefetchStage& stage) const { return fmt::format("prefetch({})", stage.batches); }
  std::string operator()(const BucketStage& stage) const {
    return fmt::format("length of '{}'", stage.buckets->options().field);
  }
  std::string operator()(const UnbatchStage& /*stage*/) const { return "unbatch()"; }
  std::string operator()(const BatchOrderStage& stage) const {
    std::string text = stage.order->combined == nullptr ? describe_batch(stage.order->batch) : "batches";
    for (const Stage& inner : stage.order->stages) text += " | " + describe(inner);
    return text + " | unbatch()";
  }
};

}  // namespace

std::vector<Stage> stages_of(const PlanPtr& plan) {
  std::vector<Stage> stages;
  for (const PlanNode* node = plan.get(); node != nullptr; node = node->before.get())
    stages.push_back(node->stage);
  std::reverse(stages.begin(), stages.end());
  return stages;
}

std::string describe(const Stage& stage) { return std::visit(DescribeStage{}, stage); }

bool is_shuffled(const Stage& stage) {
  if (std::holds_alternative<ShuffleStage>(stage) || std::holds_alternative<ShuffleWindowStage>(stage))
    return true;
  if (const auto* batches = std::get_if<BatchOrderStage>(&stage)) return is_shuffled(batches->order->stages);
  const auto* combine = std::get_if<CombineStage>(&stage);
  if (combine == nullptr) return false;
  if (std::holds_alternative<MixOptions>(combine->combination->how)) return true;
  return std::ranges::any_of(combine->combination->parts, [](const CombinedPart& part) {
    return is_shuffled(part.stages) || (part.batches && is_shuffled(part.batches->stages));
  });
}

bool is_shuffled(const std::vector<Stage>& stages) {
  return std::ranges::any_of(stages, [](const Stage& stage) { return is_shuffled(stage); });
}

}  // namespace headrace
