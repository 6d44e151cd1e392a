#include "headrace/pipeline/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/plan/index/chosen_numbers.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/ragged_batch.h"

namespace headrace {
namespace {

struct DescribeHow {
  std::string operator()(const InSequence&) const { return "concatenate"; }
  std::string operator()(const InterleaveOptions& options) const { return described("interleave", options); }
  std::string operator()(const MixOptions& options) const { return described("mix", options); }
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
  std::string operator()(const ShuffleStage& stage) const { return described("shuffle", stage.options); }
  std::string operator()(const RepeatStage& stage) const { return fmt::format("repeat(times={})", stage.times); }
  std::string operator()(const TakeStage& stage) const { return fmt::format("take(count={})", stage.count); }
  std::string operator()(const SkipStage& stage) const { return fmt::format("skip(count={})", stage.count); }
  std::string operator()(const SelectStage& stage) const { return stage.chosen->describe(); }
  std::string operator()(const ShardStage& stage) const {
    return fmt::format("shard(count={}, index={})", stage.count, stage.index);
  }
  std::string operator()(const WithoutShardStage& stage) const {
    return fmt::format("without_shard(count={}, index={})", stage.count, stage.index);
  }
  std::string operator()(const FilterStage& stage) const { return stage.selection->describe(); }
  std::string operator()(const ShuffleWindowStage& stage) const {
    return described("shuffle_window", stage.options);
  }
  std::string operator()(const ShardFilesStage& stage) const {
    return fmt::format("shard({} of {}, by file: {} files)", stage.index, stage.count, stage.ranges.size());
  }
  std::string operator()(const CombineStage& stage) const {
    const Combination& combination = *stage.combination;
    const bool of_batches = combination.of_batches();
    std::string text = of_batches ? "whole batches, " : "";
    text += std::visit(DescribeHow(), combination.how) + ":";
    for (const CombinedPart& part : combination.parts) text += fmt::format(" [{}]", describe_part(part));
    return text;
  }
  std::string operator()(const EnumerateStage& stage) const { return described("enumerate", stage.options); }
  std::string operator()(const CacheStage& stage) const {
    return fmt::format("cache({})", stage.cache->describe());
  }
  std::string operator()(const BatchStage& stage) const {
    if (stage.buckets != nullptr) return described("bucket_by_length", stage.buckets->options());
    if (stage.ragged == nullptr) return described("batch", stage.options);
    return described("ragged_batch", RaggedBatchOptions{.global_batch = stage.options.global_batch,
                                                        .drop_remainder = stage.options.drop_remainder,
                                                        .fields = stage.ragged->fields()});
  }
  std::string operator()(const PrefetchStage& stage) const {
    return fmt::format("prefetch(batches={})", stage.batches);
  }
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
