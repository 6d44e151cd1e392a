#include "headrace/pipeline/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/plan/index/combination_index.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/ragged_batch.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxOperations = 65535;

}  // namespace

PlanBuilder::PlanBuilder(const PlanSource& source) : processed_(source.processed) {
  plan_.source = source.source;
  plan_.fields = source.source->info().fields;
  if (plan_.fields.empty() || plan_.fields.size() > kMaxFields) {
    throw ConfigError(fmt::format("source {} has {} fields; 1 to {} are possible", source.source->info().name,
                                  plan_.fields.size(), kMaxFields));
  }
  if (source.zipped != nullptr) {
    take_parts(source.zipped->processed, /*zipped=*/true);
    plan_.batch = source.zipped->batch;
    plan_.prefetch = source.zipped->prefetch;
    if (plan_.batch) plan_.batching = described("batch", *plan_.batch);
  }
  if (source.combination != nullptr) take_combination(source.combination);
  for (const Field& field : plan_.fields) {
    if (processed_ || field.encoding != Encoding::kRaw || !field.shape.is_dynamic()) continue;
    if (!field.shape.without_front().is_dynamic()) continue;
    throw ConfigError(fmt::format("source {}: raw field '{}' {} differs in more than its first extent",
                                  source.source->info().name, field.name, field.shape.to_string()));
  }
}

StreamPlan PlanBuilder::finish() {
  if (plan_.ragged_batch != nullptr) plan_.ragged = plan_.ragged_batch->add_offsets(plan_.fields);
  want_fixed_fields();
  return std::move(plan_);
}

void PlanBuilder::take_combination(const std::shared_ptr<const Combination>& combination) {
  take_parts(combination->processed, /*zipped=*/false);
  plan_.index_stages.push_back(std::make_shared<const CombineStage>(combination));
  if (!combination->of_batches()) return;
  plan_.combined_batches = combination;
  plan_.batch = BatchOptions{.global_batch = 1};
  plan_.prefetch = 0;
  for (const CombinedPart& part : combination->parts) {
    plan_.batch->global_batch = std::max(plan_.batch->global_batch, part.batches->options.global_batch);
    plan_.prefetch = std::max(plan_.prefetch, part.batches->prefetch);
  }
  plan_.batching = described("batch", *plan_.batch);
}

void PlanBuilder::take_parts(const std::vector<ProcessedPart>& parts, bool zipped) {
  plan_.parts = parts;
  plan_.zipped = zipped;
  for (const ProcessedPart& part : parts) {
    plan_.operations = std::max(plan_.operations, part.plan->operations);
    if (!zipped) plan_.numbers = std::max(plan_.numbers, part.plan->numbers);
    plan_.renumbered |= part.plan->renumbered;
  }
}

void PlanBuilder::add_index_stage(StagePtr stage) {
  (plan_.batch ? plan_.batch_stages : plan_.index_stages).push_back(std::move(stage));
}

void PlanBuilder::insert_index_stage(std::size_t place, StagePtr stage) {
  plan_.index_stages.insert(plan_.index_stages.begin() + static_cast<std::ptrdiff_t>(place), std::move(stage));
}

void PlanBuilder::begin_batches(const Stage& stage, const BatchOptions& options) {
  const std::string batching = stage.describe();
  if (plan_.batch) {
    throw ConfigError(
        fmt::format("{} stands after batch({}): a batch of batches", batching, plan_.batch->global_batch),
        fmt::format("leave one of them out, or write unbatch() before {}", batching));
  }
  plan_.batch = options;
  plan_.batching = batching;
}

void PlanBuilder::add_operation(const Operation& operation) {
  if (plan_.operations == kMaxOperations) throw ConfigError("a plan has at most 65535 operations");
  plan_.fields = operation.definition().apply_to_sample(plan_.fields);
  PlannedOperation planned{.operation = operation, .number = static_cast<std::uint16_t>(plan_.operations++)};
  if (is_batch_level(operation)) {
    want_batch(operation);
    want_soft_labels(operation);
    plan_.batch_operations.push_back(std::move(planned));
  } else {
    want_before_mixing(describe(operation));
    plan_.sample_stages.emplace_back(std::move(planned));
  }
}

void PlanBuilder::want_nothing_random(const std::string& stage, const StreamPlan& plan) {
  for (const ProcessedPart& part : plan.parts) want_nothing_random(stage, *part.plan);
  for (const SampleStage& earlier : plan.sample_stages) {
    const auto* planned = std::get_if<PlannedOperation>(&earlier);
    if (planned == nullptr || !is_random(planned->operation)) continue;
    throw ConfigError(
        fmt::format("{} after {}: its result changes from epoch to epoch", stage, describe(planned->operation)),
        fmt::format("put .{} before random operations", stage));
  }
}

void PlanBuilder::want_batch(const Operation& mixing) const {
  if (plan_.buckets != nullptr) {
    throw ConfigError(fmt::format("{} after bucket_by_length(), whose batches differ in shape", describe(mixing)),
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
void PlanBuilder::want_before_mixing(const std::string& stage) const {
  if (plan_.batch_operations.empty()) return;
  const std::string mixing = describe(plan_.batch_operations.front().operation);
  throw ConfigError(fmt::format("{} stands after {}, which mixes the examples of a batch", stage, mixing),
                    fmt::format("put it before map({})", mixing));
}

// Labels that can be blended.
void PlanBuilder::want_soft_labels(const Operation& operation) const {
  const Field& label = plan_.fields[find_field(plan_.fields, kLabelField)];
  if (label.dtype == DType::kF32 && label.shape.rank() == 1 && !label.shape.is_dynamic()) return;
  throw ConfigError(fmt::format("{} blends labels, and field '{}' is {} {}", describe(operation), label.name,
                                to_string(label.dtype), label.shape.to_string()),
                    "put one_hot(classes) before batch(): map(one_hot(10))");
}

// Whether it has the length of its batch's bucket.
bool PlanBuilder::is_bucketed(const Field& field) const {
  return plan_.buckets != nullptr && field.encoding == Encoding::kRaw &&
         std::ranges::find(plan_.buckets->fields(), field.name) != plan_.buckets->fields().end() &&
         !field.shape.without_front().is_dynamic();
}

bool PlanBuilder::is_ragged(const Field& field) const {
  return std::ranges::any_of(plan_.ragged,
                             [&](const RaggedTensor& one) { return &plan_.fields[one.values] == &field; });
}

void PlanBuilder::want_fixed_fields() const {
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
          fmt::format("batch(): the size of field '{}' {} differs from record to record or is unknown", field.name,
                      field.shape.to_string()),
          "bring all images to one size: resize(), random_resized_crop(), center_crop(), pad_crop(); "
          "or say what all measure: decode(height=, width=)");
    }
  }
}

StreamPlan make_stream_plan(const PlanPtr& plan) {
  const PlanSource& source = source_of(plan);
  std::vector<StagePtr> stages = stages_of(plan);
  const auto build = [&] {
    PlanBuilder builder(source);
    for (const StagePtr& stage : stages) stage->plan_into(builder);
    return builder.finish();
  };
  try {
    return build();
  } catch (const ConfigError&) {
    // A plan that is invalid for images of any size may be valid for images of one size.
    if (source.processed) throw;  // the source's bytes are not those that are decoded
    StagePtr sized;
    const auto is_sized = [&](const StagePtr& stage) { return (sized = stage->sized(*source.source)) != nullptr; };
    const auto found = std::ranges::find_if(stages, is_sized);
    if (found == stages.end()) throw;
    *found = std::move(sized);
  }
  return build();
}

}  // namespace headrace
