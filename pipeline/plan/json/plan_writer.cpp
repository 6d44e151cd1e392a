#include <fmt/format.h>

#include <span>
#include <vector>

#include "headrace/cache/disk_cache.h"
#include "headrace/cache/memory_cache.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/index/chosen_numbers.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/json/format.h"
#include "headrace/pipeline/plan/json/named_parts.h"
#include "headrace/pipeline/plan/json/option_writer.h"
#include "headrace/pipeline/plan/json/parse.h"
#include "headrace/pipeline/plan/json/stage_options.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/plan/ragged_batch.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace plan_json {
namespace {

using Out = nlohmann::ordered_json;

// {"shuffle": {"seed": 7, ...}}; `path` is of the object.
template <typename Options>
Out named_options(const std::string& path, const char* name, Options options) {
  return {{name, write_options(path + "." + name, [&](OptionVisitor& visit) { options.each_field(visit); })}};
}

class PlanWriter {
 public:
  explicit PlanWriter(const PlanParts& parts) : parts_(parts) {}

  // {"source": ..., "stages": [...]}; `path` is of the object and ends with a point, or is empty.
  Out dataset(const PlanPtr& plan, const std::string& path) {
    const std::vector<Stage> stages = stages_of(plan);
    count_stages(stages.size());
    const auto* combine = stages.size() > 1 ? std::get_if<CombineStage>(&stages[1]) : nullptr;
    Out written;
    const auto& first = std::get<SourceStage>(stages[0]);
    if (first.windowed != nullptr) {
      written = dataset(first.windowed->plan, path);
      written["stages"].push_back(named_options(fmt::format("{}stages[{}]", path, written["stages"].size()),
                                                "window", first.windowed->options));
    } else if (combine == nullptr) {
      written = {{"source", source(first, path + "source")}, {"stages", Out::array()}};
    } else {
      written = combined(*combine->combination, path);
    }
    write_stages(std::span(stages).subspan(combine == nullptr ? 1 : 2), path, written["stages"]);
    return written;
  }

  // At the end of the list.
  void write_stages(std::span<const Stage> stages, const std::string& path, Out& list) {
    for (const Stage& stage : stages) {
      const std::string at = fmt::format("{}stages[{}]", path, list.size());
      list.push_back(std::visit([&](const auto& each) { return write(each, at); }, stage));
    }
  }

 private:
  void count_stages(std::size_t count) {
    stages_ += count;
    if (stages_ <= kMaxStages) return;
    throw ConfigError(fmt::format("to_json(): the plan has more than {} stages", kMaxStages));
  }

  Out source(const SourceStage& stage, const std::string& path) {
    if (stage.zipped != nullptr) return parts("zip", stage.zipped->parts, stage.zipped->options, path);
    const SourcePtr& opened = stage.unpadded != nullptr ? stage.unpadded : stage.source;
    const SourceOrigin* origin = opened->origin().get();
    if (origin == nullptr) return write_named(opened, parts_, path);
    return {{origin->name(), write_options(path + "." + origin->name(),
                                           [&](OptionVisitor& visit) { origin->visit_arguments(visit); })}};
  }

  // A dataset whose source is a combination; an unbatch() is a stage of what it was called on.
  Out combined(const Combination& combination, const std::string& path) {
    if (std::holds_alternative<UnbatchRows>(combination.how)) {
      Out written = dataset(combination.parts.front().plan, path);
      written["stages"].push_back(write_unbatch());
      return written;
    }
    std::vector<PlanPtr> plans;
    for (const CombinedPart& part : combination.parts) plans.push_back(part.plan);
    const std::string at = path + "source";
    Out made;
    if (const auto* block = std::get_if<InterleaveOptions>(&combination.how)) {
      made = parts("interleave", plans, *block, at);
    } else if (const auto* weights = std::get_if<MixOptions>(&combination.how)) {
      made = parts("mix", plans, *weights, at);
    } else {
      made = parts("concatenate", plans, NoOptions{}, at);
    }
    return {{"source", std::move(made)}, {"stages", Out::array()}};
  }

  template <typename Options>
  Out parts(const char* name, const std::vector<PlanPtr>& plans, const Options& options, const std::string& path) {
    Out list = Out::array();
    for (std::size_t i = 0; i < plans.size(); ++i)
      list.push_back(dataset(plans[i], fmt::format("{}.{}.parts[{}].", path, name, i)));
    Out written = named_options(path, name, options);
    written[name]["parts"] = std::move(list);
    return written;
  }

  Out write(const SourceStage& /*stage*/, const std::string& path) { throw misplaced(path); }
  Out write(const CombineStage& stage, const std::string& path) {
    if (std::holds_alternative<UnbatchRows>(stage.combination->how)) return write_unbatch();
    throw misplaced(path);
  }
  Out write(const DecodeStage& stage, const std::string& path) {
    return named_options(path, "decode", stage.options);
  }
  Out write(const MapStage& stage, const std::string& path) {
    Out list = Out::array();
    for (const Operation& operation : stage.operations)
      list.push_back(write(operation, fmt::format("{}.map[{}]", path, list.size())));
    return {{"map", std::move(list)}};
  }
  Out write(const Operation& operation, const std::string& path) {
    const OperationDefinition& definition = operation.definition();
    const char* name = definition.name();
    if (name == nullptr) return write_named(operation, parts_, path);
    const auto shown = [&](OptionVisitor& visit) { definition.visit_options(visit); };
    return {{name, write_options(fmt::format("{}.{}", path, name), shown)}};
  }
  Out write(const ShuffleStage& stage, const std::string& path) {
    return named_options(path, "shuffle", stage.options);
  }
  Out write(const ShuffleWindowStage& stage, const std::string& path) {
    return named_options(path, "shuffle_window", stage.options);
  }
  Out write(const RepeatStage& stage, const std::string& path) {
    return named_options(path, "repeat", Passes{static_cast<std::int64_t>(stage.times)});
  }
  Out write(const TakeStage& stage, const std::string& path) {
    return named_options(path, "take", RecordCount{stage.count});
  }
  Out write(const SkipStage& stage, const std::string& path) {
    return named_options(path, "skip", RecordCount{stage.count});
  }
  Out write(const SelectStage& stage, const std::string& path) {
    return named_options(path, "select", ChosenRecords{stage.chosen->numbers()});
  }
  Out write(const ShardStage& stage, const std::string& path) {
    return named_options(path, "shard", ShardOf{.count = stage.count, .index = stage.index});
  }
  Out write(const WithoutShardStage& stage, const std::string& path) {
    return named_options(path, "without_shard", ShardOf{.count = stage.count, .index = stage.index});
  }
  Out write(const ShardFilesStage& stage, const std::string& path) {
    return named_options(path, "shard_for_worker",
                         WorkerShard{.count = stage.count, .index = stage.index, .by = ShardBy::kFile});
  }
  Out write(const FilterStage& stage, const std::string& path) {
    RecordFilter filter = stage.selection->filter();
    const auto* labels = filter.keeps.target<LabelFilter>();
    if (labels == nullptr) return {{"filter", write_named(filter, parts_, path + ".filter")}};
    return named_options(path, "filter", LabelOptions{.labels = labels->labels, .filter = filter});
  }
  Out write(const EnumerateStage& stage, const std::string& path) {
    return named_options(path, "enumerate", stage.options);
  }
  Out write(const CacheStage& stage, const std::string& path) {
    const std::string at = path + ".cache";
    if (const auto* memory = dynamic_cast<const MemoryCache*>(stage.cache.get()))
      return {{"cache", named_options(at, "memory", MemoryBudget{memory->budget_bytes()})}};
    if (const auto* disk = dynamic_cast<const DiskCache*>(stage.cache.get())) {
      const CacheFolder folder{.folder = disk->folder(), .options = disk->options()};
      return {{"cache", named_options(at, "disk", folder)}};
    }
    throw ConfigError(
        fmt::format("to_json(): {}: the cache {} is code, which JSON cannot hold", at, stage.cache->describe()),
        "use memory() or disk(folder)");
  }
  Out write(const BatchStage& stage, const std::string& path) {
    if (stage.buckets != nullptr) return named_options(path, "bucket_by_length", stage.buckets->options());
    if (stage.ragged != nullptr) {
      return named_options(path, "ragged_batch",
                           RaggedBatchOptions{.global_batch = stage.options.global_batch,
                                              .drop_remainder = stage.options.drop_remainder,
                                              .fields = stage.ragged->fields()});
    }
    if (!stage.pad) return named_options(path, "batch", stage.options);
    return named_options(path, "padded_batch",
                         PaddedBatchOptions{.global_batch = stage.options.global_batch,
                                            .drop_remainder = stage.options.drop_remainder,
                                            .pad = *stage.pad});
  }
  Out write(const PrefetchStage& stage, const std::string& path) {
    return named_options(path, "prefetch", BatchesAhead{stage.batches});
  }

  Out write(const UnbatchStage& /*stage*/, const std::string& /*path*/) { return write_unbatch(); }
  Out write(const BucketStage& /*stage*/, const std::string& path) { throw misplaced(path); }
  Out write(const BatchOrderStage& /*stage*/, const std::string& path) { throw misplaced(path); }

  static Out write_unbatch() { return {{"unbatch", Out::object()}}; }

  static Error misplaced(const std::string& path) {
    return Error(ErrorCode::kInternal, "to_json(): a source stands at " + path);
  }

  const PlanParts& parts_;
  std::size_t stages_ = 0;
};

}  // namespace
}  // namespace plan_json

std::string Dataset::evaluation_json() const {
  const std::vector<Stage> stages = evaluation_stages(plan_);
  const PlanParts no_parts;
  nlohmann::ordered_json written{{plan_json::kVersionName, plan_json::kVersion},
                                 {"source", {{plan_json::kNamed, "data"}}},
                                 {"stages", nlohmann::ordered_json::array()}};
  plan_json::PlanWriter(no_parts).write_stages(stages, "", written["stages"]);
  return plan_json::print(written);
}

std::string Dataset::to_json(const PlanParts& parts) const {
  nlohmann::ordered_json written{{plan_json::kVersionName, plan_json::kVersion}};
  written.update(plan_json::PlanWriter(parts).dataset(plan_, ""));
  return plan_json::print(written);
}

}  // namespace headrace
