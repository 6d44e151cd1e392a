// batch(), padded_batch() and ragged_batch(): consecutive samples become a batch.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/ragged_batch.h"
#include "headrace/pipeline/plan/scan/length_scan.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"
#include "headrace/pipeline/sources/combined/padded_source.h"

namespace headrace {
namespace {

constexpr const char* kBatch = "batch";
constexpr const char* kPaddedBatch = "padded_batch";
constexpr const char* kRaggedBatch = "ragged_batch";

class BatchStage : public OptionStage<BatchOptions> {
 public:
  explicit BatchStage(BatchOptions options) : OptionStage(kBatch, options) {}

  void plan_into(PlanBuilder& builder) const override { builder.begin_batches(*this, options()); }
  void evaluate(EvaluationStages& stages) const override {
    stages.keep_batch(std::make_shared<const BatchStage>(with_remainder()), /*padded=*/false);
  }
  StageTraits traits() const override { return {.batches = true}; }

 protected:
  // An evaluation takes the last part of an epoch, too.
  BatchOptions with_remainder() const { return {.global_batch = options().global_batch, .drop_remainder = false}; }
};

// Of the padded records of the source.
class PaddedBatchStage final : public BatchStage {
 public:
  PaddedBatchStage(BatchOptions options, std::vector<PadField> pad) : BatchStage(options), pad_(std::move(pad)) {}

  nlohmann::ordered_json to_json(const PlanParts& /*parts*/, const std::string& path) const override {
    return plan_json::named_options(
        path, kPaddedBatch,
        PaddedBatchOptions{
            .global_batch = options().global_batch, .drop_remainder = options().drop_remainder, .pad = pad_});
  }
  void evaluate(EvaluationStages& stages) const override {
    auto stage = std::make_shared<const PaddedBatchStage>(with_remainder(), stages.padding(pad_));
    stages.keep_batch(std::move(stage), /*padded=*/true);
  }

 private:
  std::vector<PadField> pad_;  // as given
};

class RaggedBatchStage final : public BatchStage {
 public:
  RaggedBatchStage(BatchOptions options, std::shared_ptr<const RaggedBatch> ragged)
      : BatchStage(options), ragged_(std::move(ragged)) {}

  std::string describe() const override { return described(kRaggedBatch, all_options()); }
  nlohmann::ordered_json to_json(const PlanParts& /*parts*/, const std::string& path) const override {
    return plan_json::named_options(path, kRaggedBatch, all_options());
  }
  void plan_into(PlanBuilder& plan) const override {
    BatchStage::plan_into(plan);
    plan.plan().ragged_batch = ragged_;
  }
  void evaluate(EvaluationStages& stages) const override {
    stages.keep_batch(std::make_shared<const RaggedBatchStage>(with_remainder(), ragged_), /*padded=*/false);
  }

 private:
  RaggedBatchOptions all_options() const {
    return {.global_batch = options().global_batch,
            .drop_remainder = options().drop_remainder,
            .fields = ragged_->fields()};
  }

  std::shared_ptr<const RaggedBatch> ragged_;
};

BatchOptions checked(BatchOptions options) {
  if (options.global_batch < 1) {
    throw ConfigError(fmt::format("batch({}): a batch holds at least one example", options.global_batch));
  }
  return options;
}

// Throws ConfigError if the longest record would have to be found in a stream.
void require_lengths_of_stream(const SourceInfo& info, const std::vector<PaddedField>& paddings) {
  const auto unknown = std::ranges::find(paddings, 0, &PaddedField::length);
  if (!info.streamed || unknown == paddings.end()) return;
  const std::string& field = info.fields[unknown->field].name;
  throw ConfigError(fmt::format("{} of {}: the longest record of a stream is not known beforehand",
                                named_or("Dataset::padded_batch()", "padding"), info.name),
                    joined({fmt::format("say to which length the field '{}' is padded", field),
                            advice("keep all records in memory: {}", named("pulled()"))}));
}

// Reads batches of as many examples as the caller wants instead of the plan's.
template <typename Options, auto kAdd>
StageCall batching_call(const char* name) {
  StageCall call = stage_call<Options, kAdd>(name);
  call.read = [](const Dataset& before, const plan_json::JsonPlace& place, const PlanOptions& plan,
                 const plan_json::Members& members) {
    auto options = plan_json::read<Options>(place, plan, members);
    if (plan.global_batch > 0) options.global_batch = plan.global_batch;
    return kAdd(before, options);
  };
  return call;
}

}  // namespace

Dataset Dataset::batch(BatchOptions options) const {
  return Dataset(add_stage(plan_, std::make_shared<const BatchStage>(checked(options))));
}

Dataset Dataset::padded_batch(PaddedBatchOptions options) const {
  // Refuses what makes no sense before any record is read.
  const BatchOptions batch =
      checked({.global_batch = options.global_batch, .drop_remainder = options.drop_remainder});
  const StreamPlan plan = make_stream_plan(plan_);
  if (!plan.parts.empty()) {
    throw ConfigError("padded_batch() after a combination of datasets that were decoded, mapped or cached",
                      "combine them first, then call padded_batch()");
  }
  PlanSource origin = source_of(plan_);
  const SourcePtr source = origin.source;
  std::vector<PaddedField> paddings = plan_padding(source->info(), options.pad);
  require_lengths_of_stream(source->info(), paddings);
  origin.unpadded = source;
  origin.source = std::make_shared<PaddedSource>(source, with_lengths(source, std::move(paddings)));
  auto stage = std::make_shared<const PaddedBatchStage>(batch, std::move(options.pad));
  return Dataset(add_stage(with_source(plan_, std::move(origin)), std::move(stage)));
}

Dataset Dataset::ragged_batch(RaggedBatchOptions options) const {
  const BatchOptions batch =
      checked({.global_batch = options.global_batch, .drop_remainder = options.drop_remainder});
  const PlanSource& origin = source_of(plan_);
  auto ragged = std::make_shared<const RaggedBatch>(origin.source, !origin.processed, std::move(options.fields));
  return Dataset(add_stage(plan_, std::make_shared<const RaggedBatchStage>(batch, std::move(ragged))));
}

StageCall batch_call() {
  return batching_call<BatchOptions, [](const Dataset& data, const BatchOptions& options) {
    return data.batch(options);
  }>(kBatch);
}

StageCall padded_batch_call() {
  StageCall call = batching_call<PaddedBatchOptions, [](const Dataset& data, const PaddedBatchOptions& options) {
    return data.padded_batch(options);
  }>(kPaddedBatch);
  call.options.push_back(shown_options<PadField>("padded_batch: pad"));
  return call;
}

StageCall ragged_batch_call() {
  StageCall call = batching_call<RaggedBatchOptions, [](const Dataset& data, const RaggedBatchOptions& options) {
    return data.ragged_batch(options);
  }>(kRaggedBatch);
  call.options.push_back(shown_options<RaggedField>("ragged_batch: fields"));
  return call;
}

}  // namespace headrace
