#include "headrace/pipeline/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/operations/enumerate.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/plan/first_image.h"
#include "headrace/pipeline/plan/index/batch_order.h"
#include "headrace/pipeline/plan/index/bucket_batches.h"
#include "headrace/pipeline/plan/index/chosen_numbers.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/ragged_batch.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxOperations = 65535;

// Reads the stages one after another.
class Planner {
 public:
  StreamPlan plan(const std::vector<Stage>& stages) {
    for (const Stage& stage : stages) {
      std::visit(*this, stage);
    }
    if (plan_.ragged_batch != nullptr) plan_.ragged = plan_.ragged_batch->add_offsets(plan_.fields);
    want_fixed_fields();
    plan_.operations = operations_;
    return std::move(plan_);
  }

  void operator()(const SourceStage& stage) {
    plan_.source = stage.source;
    plan_.fields = stage.source->info().fields;
    if (plan_.fields.empty() || plan_.fields.size() > kMaxFields) {
      throw ConfigError(fmt::format("source {} has {} fields; 1 to {} are possible", stage.source->info().name,
                                    plan_.fields.size(), kMaxFields));
    }
    if (stage.zipped != nullptr) {
      take_parts(stage.zipped->processed, /*zipped=*/true);
      plan_.batch = stage.zipped->batch;
      plan_.prefetch = stage.zipped->prefetch;
    }
    processed_ = stage.processed;
    for (const Field& field : plan_.fields) {
      if (processed_ || field.encoding != Encoding::kRaw || !field.shape.is_dynamic()) continue;
      if (!field.shape.without_front().is_dynamic()) continue;
      throw ConfigError(fmt::format("source {}: raw field '{}' {} differs in more than its first extent",
                                    stage.source->info().name, field.name, field.shape.to_string()));
    }
  }

  void operator()(const DecodeStage& stage) {
    bool found = false;
    for (Field& field : plan_.fields) {
      if (field.encoding != Encoding::kImage) continue;
      field = decoded_field(field, stage);
      found = true;
    }
    want_before_mixing("decode()");
    if (!found)
      throw ConfigError("decode(): no field is an encoded image", "remove decode(), or decode only once");
    plan_.sample_stages.emplace_back(stage);
  }

  void operator()(const MapStage& stage) {
    for (const Operation& operation : stage.operations) {
      if (operations_ == kMaxOperations) throw ConfigError("a plan has at most 65535 operations");
      plan_.fields = operation.definition().apply_to_sample(plan_.fields);
      PlannedOperation planned{.operation = operation, .number = static_cast<std::uint16_t>(operations_++)};
      if (is_batch_level(operation)) {
        want_batch(operation);
        want_soft_labels(operation);
        plan_.batch_operations.push_back(std::move(planned));
      } else {
        want_before_mixing(describe(operation));
        plan_.sample_stages.emplace_back(std::move(planned));
      }
    }
  }

  void operator()(const CacheStage& stage) {
    if (std::ranges::find(plan_.caches, stage.cache, &PlannedCache::cache) != plan_.caches.end()) {
      throw ConfigError("one cache stands at two places of a plan", "give each cache() a cache of its own");
    }
    want_numbers("cache()");
    want_before_mixing("cache()");
    want_nothing_random("cache()");
    if (plan_.renumbered) {
      throw ConfigError("cache() after enumerate() of shuffled or repeated records: their numbers change",
                        "put cache() before enumerate()");
    }
    plan_.caches.push_back({.cache = stage.cache, .stages = plan_.sample_stages.size()});
  }

  void operator()(const FilterStage& stage) {
    want_numbers(describe(Stage{stage}));
    if (plan_.batch) {
      throw ConfigError(fmt::format("{} stands after batch() and judges single records", describe(Stage{stage})),
                        "put filter() before batch(), or unbatch() before it and another batch() after it");
    }
    if (stage.selection->filter().processed || !plan_.parts.empty()) want_nothing_random("filter()");
    const std::size_t place = stages_before_filter(plan_.index_stages);
    plan_.index_stages.insert(plan_.index_stages.begin() + static_cast<std::ptrdiff_t>(place), Stage{stage});
  }

  void operator()(const CombineStage& stage) {
    const Combination& combination = *stage.combination;
    take_parts(combination.processed, /*zipped=*/false);
    plan_.index_stages.emplace_back(stage);
    if (!combination.of_batches()) return;
    plan_.combined_batches = stage.combination;
    plan_.batch = BatchOptions{.global_batch = 1};
    plan_.prefetch = 0;
    for (const CombinedPart& part : combination.parts) {
      plan_.batch->global_batch = std::max(plan_.batch->global_batch, part.batches->options.global_batch);
      plan_.prefetch = std::max(plan_.prefetch, part.batches->prefetch);
    }
  }

  // Numbers positions, and adds the number to the sample.
  void operator()(const EnumerateStage& stage) {
    want_before_mixing("enumerate()");
    if (plan_.batch) {
      throw ConfigError("enumerate() stands after batch(), where each batch knows its number",
                        "put enumerate() before batch(), or read the batch's step");
    }
    EnumerateStage placed = stage;
    placed.place = plan_.numbers++;
    std::string counted;
    for (const Stage& before : plan_.index_stages) counted += (counted.empty() ? "" : " | ") + describe(before);
    const bool renumbered = std::ranges::any_of(plan_.index_stages, renumbers);
    const Operation number(define(Enumeration{.field = stage.options.field,
                                              .place = placed.place,
                                              .counted = std::move(counted),
                                              .may_change = renumbered}));
    plan_.renumbered |= renumbered;
    plan_.fields = number.definition().apply_to_sample(plan_.fields);
    plan_.sample_stages.emplace_back(PlannedOperation{.operation = number});
    plan_.index_stages.emplace_back(std::move(placed));
  }

  void operator()(const BatchStage& stage) {
    if (plan_.batch) {
      const std::string again = describe(Stage{stage});
      throw ConfigError(
          fmt::format("{} stands after batch({}): a batch of batches", again, plan_.batch->global_batch),
          fmt::format("leave one of them out, or write unbatch() before {}", again));
    }
    plan_.batch = stage.options;
    plan_.ragged_batch = stage.ragged;
    if (stage.buckets == nullptr) return;
    want_numbers("bucket_by_length()");
    const std::size_t place = stages_before_buckets(plan_.index_stages);
    plan_.buckets = stage.buckets;
    plan_.bucket_place = plan_.numbers++;
    plan_.index_stages.insert(plan_.index_stages.begin() + static_cast<std::ptrdiff_t>(place),
                              BucketStage{.buckets = plan_.buckets, .place = plan_.bucket_place});
  }

  void operator()(const PrefetchStage& stage) {
    if (!plan_.batch) {
      throw ConfigError("prefetch() counts batches and there are none yet", "put prefetch() after batch()");
    }
    plan_.prefetch = stage.batches;
  }

  // What was done to batches before it becomes an order of records. Trailing repeats do the same to records.
  void operator()(const UnbatchStage& /*stage*/) {
    want_before_mixing("unbatch()");
    if (plan_.buckets != nullptr) {
      throw ConfigError("unbatch() after bucket_by_length(), whose samples differ in length",
                        "leave both out, or use padded_batch()");
    }
    std::vector<Stage> repeats;
    std::vector<Stage>& stages = plan_.batch_stages;
    for (; !stages.empty() && std::holds_alternative<RepeatStage>(stages.back()); stages.pop_back()) {
      repeats.push_back(std::move(stages.back()));
    }
    const bool combined = plan_.combined_batches != nullptr;
    const bool keeps_order = !plan_.batch->drop_remainder && stages.empty() && !combined;
    if (is_shuffled(stages)) want_numbers("shuffle_window() between batch() and unbatch()");
    if (!keeps_order) {
      plan_.index_stages.emplace_back(BatchOrderStage{std::make_shared<BatchOrder>(
          BatchOrder{.batch = *plan_.batch, .stages = std::move(stages), .combined = plan_.combined_batches})});
    }
    plan_.index_stages.insert(plan_.index_stages.end(), repeats.rbegin(), repeats.rend());
    stages.clear();
    plan_.batch.reset();
    plan_.combined_batches.reset();
    plan_.ragged_batch.reset();
  }

  template <typename IndexStage>
  void operator()(const IndexStage& stage) {
    if (!keeps_streaming<IndexStage>) want_numbers(describe(Stage{stage}));
    Stage& added = (plan_.batch ? plan_.batch_stages : plan_.index_stages).emplace_back(stage);
    if (auto* select = std::get_if<SelectStage>(&added))
      select->draws_anew = !plan_.batch && !is_shuffled(plan_.index_stages);
  }

 private:
  // Whether positions are shuffled near to where they were, if at all.
  template <typename IndexStage>
  static constexpr bool keeps_streaming =
      std::is_same_v<IndexStage, TakeStage> || std::is_same_v<IndexStage, SkipStage> ||
      std::is_same_v<IndexStage, ShardStage> || std::is_same_v<IndexStage, WithoutShardStage> ||
      std::is_same_v<IndexStage, ShuffleWindowStage>;

  void want_numbers(const std::string& stage) const { refuse_stream(*plan_.source, stage); }

  // Whether a record may have another position after the stage in another pass, or several in one.
  static bool renumbers(const Stage& stage) {
    if (is_shuffled(stage) || std::holds_alternative<RepeatStage>(stage)) return true;
    if (const auto* select = std::get_if<SelectStage>(&stage)) return select->chosen->max_occurrences() > 1;
    if (const auto* batches = std::get_if<BatchOrderStage>(&stage)) {
      return std::ranges::any_of(batches->order->stages, renumbers);
    }
    const auto* combine = std::get_if<CombineStage>(&stage);
    return combine != nullptr && std::ranges::any_of(combine->combination->parts, [](const CombinedPart& part) {
             return std::ranges::any_of(part.stages, renumbers) ||
                    (part.batches && std::ranges::any_of(part.batches->stages, renumbers));
           });
  }

  void take_parts(const std::vector<ProcessedPart>& parts, bool zipped) {
    plan_.parts = parts;
    plan_.zipped = zipped;
    for (const ProcessedPart& part : parts) {
      operations_ = std::max(operations_, part.plan->operations);
      if (!zipped) plan_.numbers = std::max(plan_.numbers, part.plan->numbers);
      plan_.renumbered |= part.plan->renumbered;
    }
  }

  // Refuses random operations before `stage`, whose result is made once.
  void want_nothing_random(const std::string& stage) const { want_nothing_random(stage, plan_); }

  static void want_nothing_random(const std::string& stage, const StreamPlan& plan) {
    for (const ProcessedPart& part : plan.parts) want_nothing_random(stage, *part.plan);
    for (const SampleStage& earlier : plan.sample_stages) {
      const auto* planned = std::get_if<PlannedOperation>(&earlier);
      if (planned == nullptr || !is_random(planned->operation)) continue;
      throw ConfigError(
          fmt::format("{} after {}: its result changes from epoch to epoch", stage, describe(planned->operation)),
          fmt::format("put .{} before random operations", stage));
    }
  }

  void want_batch(const Operation& mixing) const {
    if (plan_.buckets != nullptr) {
      throw ConfigError(
          fmt::format("{} after bucket_by_length(), whose batches differ in shape", describe(mixing)),
          "use padded_batch(), or mix the examples in a function of whole batches");
    }
    if (plan_.ragged_batch != nullptr) {
      throw ConfigError(fmt::format("{} after ragged_batch(), whose samples differ in length", describe(mixing)),
                        "use padded_batch(), or mix the examples in your own loop");
    }
    if (plan_.batch) return;
    throw ConfigError(fmt::format("{} stands before batch() and mixes the examples of a batch", describe(mixing)),
                      "put map(mixup()) or map(cutmix()) after batch()");
  }

  // Refuses what works on single examples if those of a batch have been mixed.
  void want_before_mixing(const std::string& stage) const {
    if (plan_.batch_operations.empty()) return;
    const std::string mixing = describe(plan_.batch_operations.front().operation);
    throw ConfigError(fmt::format("{} stands after {}, which mixes the examples of a batch", stage, mixing),
                      fmt::format("put it before map({})", mixing));
  }

  // Labels that can be blended.
  void want_soft_labels(const Operation& operation) const {
    const Field& label = plan_.fields[find_field(plan_.fields, kLabelField)];
    if (label.dtype == DType::kF32 && label.shape.rank() == 1 && !label.shape.is_dynamic()) return;
    throw ConfigError(fmt::format("{} blends labels, and field '{}' is {} {}", describe(operation), label.name,
                                  to_string(label.dtype), label.shape.to_string()),
                      "put one_hot(classes) before batch(): map(one_hot(10))");
  }

  // Whether it has the length of its batch's bucket.
  bool is_bucketed(const Field& field) const {
    return plan_.buckets != nullptr && field.encoding == Encoding::kRaw &&
           std::ranges::find(plan_.buckets->fields(), field.name) != plan_.buckets->fields().end() &&
           !field.shape.without_front().is_dynamic();
  }

  bool is_ragged(const Field& field) const {
    return std::ranges::any_of(plan_.ragged,
                               [&](const RaggedTensor& one) { return &plan_.fields[one.values] == &field; });
  }

  void want_fixed_fields() const {
    if (!plan_.batch) return;
    for (const Field& field : plan_.fields) {
      if (is_bucketed(field) || is_ragged(field)) continue;
      if (field.encoding == Encoding::kImage) {
        throw ConfigError(fmt::format("batch(): field '{}' is still encoded", field.name),
                          "call decode() and crop or resize to one size");
      }
      const bool read_raw =
          !processed_ && plan_.source->info().fields.size() > find_field(plan_.fields, field.name) &&
          plan_.source->info().fields[find_field(plan_.fields, field.name)].encoding == Encoding::kRaw;
      if (field.shape.is_dynamic() && read_raw) {
        throw ConfigError(fmt::format("batch(): field '{}' {} differs in length from record to record", field.name,
                                      field.shape.to_string()),
                          "use padded_batch(), or ragged_batch()");
      }
      if (field.shape.is_dynamic()) {
        throw ConfigError(
            fmt::format("batch(): the size of field '{}' {} differs from record to record or is unknown",
                        field.name, field.shape.to_string()),
            "bring all images to one size: resize(), random_resized_crop(), center_crop(), pad_crop(); "
            "or say what all measure: decode(height=, width=)");
      }
    }
  }

  StreamPlan plan_;
  std::size_t operations_ = 0;
  bool processed_ = false;  // whether the source's fields are those of processed parts
};

// Gives decode() the size of the first image where it has none. False: it has one, or there is no such image.
bool size_by_first_image(std::vector<Stage>& stages) {
  const auto found = std::ranges::find_if(stages, [](const Stage& stage) {
    const auto* decode = std::get_if<DecodeStage>(&stage);
    return decode != nullptr && decode->options.height == 0;
  });
  if (found == stages.end()) return false;
  if (std::get<SourceStage>(stages.front()).processed) return false;  // its bytes are not those that are decoded
  const SourcePtr& source = std::get<SourceStage>(stages.front()).source;
  auto sized = sized_by_first_image(std::get<DecodeStage>(*found), *source);
  if (sized) *found = std::move(*sized);
  return sized.has_value();
}

std::string note_on_size(const SampleStage& stage) {
  const auto* decode = std::get_if<DecodeStage>(&stage);
  if (decode == nullptr || decode->first_image.empty()) return {};
  return fmt::format("  [the size of the first image, {}]", decode->first_image);
}

}  // namespace

IndexMap StreamPlan::index_map(std::uint64_t seed) const {
  return IndexMap(source->info().records, index_stages, seed);
}

IndexMap StreamPlan::batch_index_map(std::uint64_t records, std::uint64_t seed) const {
  if (buckets != nullptr) return batch_map(BucketBatches(*this, records).count(), batch_stages, seed);
  return batch_map(batch_rows(records).count(), stages_on_batches(combined_batches.get(), batch_stages), seed);
}

BatchRows StreamPlan::batch_rows(std::uint64_t records) const {
  return combined_batches != nullptr ? BatchRows(*combined_batches) : BatchRows(records, *batch);
}

std::uint64_t StreamPlan::steps_per_epoch() const { return batch_index_map(index_map(0).size(), 0).size(); }

std::uint64_t StreamPlan::examples_per_epoch() const {
  const std::uint64_t records = index_map(0).size();
  if (combined_batches != nullptr) {
    return count_examples(batch_rows(records), stages_on_batches(combined_batches.get(), batch_stages), 0);
  }
  if (batch_stages.empty()) return records;
  return buckets != nullptr ? count_bucketed_examples(*this)
                            : count_examples(batch_rows(records), batch_stages, 0);
}

void refuse_stream(const Source& source, const std::string& what) {
  const SourceInfo& info = source.info();
  if (!info.streamed) return;
  throw ConfigError(
      fmt::format("{} of {}: a stream has no record numbers and no known length", what, info.name),
      joined({"write it to a file first", advice("keep all records in memory: {}", named("pulled()")),
              advice("shuffle within a window: {}", named("Dataset::shuffle_window()"))}));
}

StreamPlan renumbered(StreamPlan plan, std::size_t by) {
  for (SampleStage& stage : plan.sample_stages) {
    auto* planned = std::get_if<PlannedOperation>(&stage);
    if (planned != nullptr) planned->number = static_cast<std::uint16_t>(planned->number + by);
  }
  for (ProcessedPart& part : plan.parts) {
    part.plan = std::make_shared<const StreamPlan>(renumbered(*part.plan, by));
  }
  plan.operations += by;
  return plan;
}

StreamPlan make_stream_plan(const PlanPtr& plan) {
  std::vector<Stage> stages = stages_of(plan);
  try {
    return Planner().plan(stages);
  } catch (const ConfigError&) {
    // A plan that is invalid for images of any size may be valid for images of one size.
    if (!size_by_first_image(stages)) throw;
  }
  return Planner().plan(stages);
}

namespace {

// The stages of a sample, one a line; of parts of a combination, indented.
std::string explain_sample_stages(const StreamPlan& plan, const std::vector<std::size_t>& on_device,
                                  const std::string& indent) {
  std::string text;
  for (std::size_t part = 0; part < plan.parts.size(); ++part) {
    const std::string inner = explain_sample_stages(*plan.parts[part].plan, {}, indent + "  ");
    if (!inner.empty()) text += fmt::format("{}records of dataset {}:\n{}", indent, part, inner);
  }
  for (std::size_t i = 0; i <= plan.sample_stages.size(); ++i) {
    for (const PlannedCache& planned : plan.caches) {
      if (planned.stages != i) continue;
      text += indent + printable(describe(Stage{CacheStage{planned.cache}}));
      text += indent.empty() ? "\n" : "  [its records are read nevertheless]\n";
    }
    if (i == plan.sample_stages.size()) break;
    const bool marked = std::ranges::find(on_device, i) != on_device.end();
    text += indent + printable(describe(plan.sample_stages[i]) + note_on_size(plan.sample_stages[i]));
    text += marked ? "  [on the device]\n" : "\n";
  }
  return text;
}

}  // namespace

std::string explain_plan(const StreamPlan& plan, const std::vector<std::size_t>& on_device) {
  std::string text = printable(describe(Stage{SourceStage{plan.source}})) + "\n";
  for (const Stage& stage : plan.index_stages) {
    const auto* batches = std::get_if<BatchOrderStage>(&stage);
    const bool scans = batches != nullptr && may_scan(*batches->order);
    text += printable(describe(stage)) + "  [on indices";
    const char* which = scans && batches->order->combined != nullptr ? "a" : "the last";
    text += scans ? fmt::format("; a pass first looks at all batches' numbers if {} batch is smaller]\n", which)
                  : "]\n";
  }
  text += explain_sample_stages(plan, on_device, "");
  for (const Field& field : plan.fields) {
    text += fmt::format("  -> {} {} {}", printable(field.name), to_string(field.dtype), field.shape.to_string());
    if (field.layout)
      text += *field.layout == ImageLayout::kChannelsFirst ? ", channels first" : ", channels last";
    if (has_doubtful_layout(field)) text += ", of a layout that nothing says: layout_is()";
    text += '\n';
  }
  if (plan.batch) {
    text += plan.combined_batches != nullptr
                ? fmt::format("batches of the datasets, of up to {} examples", plan.batch->global_batch)
                : printable(describe(Stage{
                      BatchStage{.options = *plan.batch, .buckets = plan.buckets, .ragged = plan.ragged_batch}}));
    text += plan.buckets == nullptr ? "\n" : "  [an epoch first looks at all records' numbers: 4 bytes each]\n";
    for (const PlannedOperation& planned : plan.batch_operations) {
      text += printable(describe(planned.operation)) + "  [on batches]\n";
    }
    for (const Stage& stage : plan.batch_stages) text += printable(describe(stage)) + "  [on batches]\n";
    text += describe(Stage{PrefetchStage{plan.prefetch}}) + "\n";
  }
  return text;
}

}  // namespace headrace
