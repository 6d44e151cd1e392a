// prefetch(): how many batches are made ahead.
#include <fmt/format.h>

#include <memory>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

struct BatchesAhead {
  int batches = 2;

  void each_field(OptionVisitor& visit) { visit("batches", batches, "How many batches are made ahead."); }
};

class PrefetchStage final : public OptionStage<BatchesAhead> {
 public:
  using OptionStage::OptionStage;

  void plan_into(PlanBuilder& plan) const override {
    if (!plan.plan().batch) {
      throw ConfigError("prefetch() counts batches and there are none yet", "put prefetch() after batch()");
    }
    plan.plan().prefetch = options().batches;
  }
};

constexpr const char* kPrefetch = "prefetch";

}  // namespace

Dataset Dataset::prefetch(int batches) const {
  if (batches < 0) throw ConfigError(fmt::format("prefetch({}): the depth cannot be negative", batches));
  return Dataset(add_stage(plan_, std::make_shared<const PrefetchStage>(kPrefetch, BatchesAhead{batches})));
}

StageCall prefetch_call() {
  return stage_call<BatchesAhead, [](const Dataset& data, BatchesAhead options) {
    return data.prefetch(options.batches);
  }>(kPrefetch, {"batches"});
}

}  // namespace headrace
