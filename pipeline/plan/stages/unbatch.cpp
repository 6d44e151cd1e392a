// unbatch(): undoes batch(), so that what was done to batches becomes an order of records, or splits records of
// several samples.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/index/batch_order.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"
#include "headrace/pipeline/sources/combined/combined_sources.h"

namespace headrace {
namespace {

constexpr const char* kUnbatch = "unbatch";

class UnbatchStage final : public OptionStage<NoOptions> {
 public:
  UnbatchStage() : OptionStage(kUnbatch, {}) {}

  // Trailing repeats do the same to records.
  void plan_into(PlanBuilder& builder) const override {
    builder.want_before_mixing("unbatch()");
    StreamPlan& plan = builder.plan();
    if (plan.buckets != nullptr) {
      throw ConfigError("unbatch() after bucket_by_length(), whose samples differ in length",
                        "leave both out, or use padded_batch()");
    }
    std::vector<StagePtr> stages = std::exchange(plan.batch_stages, {}), repeats;
    for (; !stages.empty() && stages.back()->traits().times > 0; stages.pop_back())
      repeats.push_back(stages.back());
    if (is_shuffled(stages)) builder.want_numbers("shuffle_window() between batch() and unbatch()");
    const bool keeps_order = !plan.batch->drop_remainder && stages.empty() && plan.combined_batches == nullptr;
    if (!keeps_order) {
      plan.index_stages.push_back(
          std::make_shared<const BatchOrderStage>(*plan.batch, std::move(stages), plan.combined_batches));
    }
    plan.index_stages.insert(plan.index_stages.end(), repeats.rbegin(), repeats.rend());
    plan.batch.reset();
    plan.combined_batches.reset();
    plan.ragged_batch.reset();
  }
  void evaluate(EvaluationStages& stages) const override { stages.undo_batch(shared_from_this()); }
};

}  // namespace

StagePtr unbatch_stage() { return std::make_shared<const UnbatchStage>(); }

Dataset Dataset::unbatch() const {
  const StreamPlan plan = make_stream_plan(plan_);
  if (plan.batch) return Dataset(add_stage(plan_, unbatch_stage()));
  refuse_stream(*plan.source, named_or("Dataset::unbatch()", "unbatching"));
  if (!plan.is_unprocessed()) {
    throw ConfigError("unbatch() of records after decode(), map() or cache()", "put unbatch() before them");
  }
  auto source = std::make_shared<const UnbatchedSource>(plan.source);
  auto combination = std::make_shared<Combination>(Combination{.how = UnbatchRows{source->rows()}, .parts = {}});
  const SourceInfo& info = plan.source->info();
  combination->parts.push_back(
      {.name = info.name, .records = info.records, .stages = plan.index_stages, .plan = plan_});
  return Dataset(begin_plan({.source = std::move(source), .combination = std::move(combination)}));
}

StageCall unbatch_call() {
  return stage_call<NoOptions, [](const Dataset& data, NoOptions) { return data.unbatch(); }>(kUnbatch);
}

}  // namespace headrace
