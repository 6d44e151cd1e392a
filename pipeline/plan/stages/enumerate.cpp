// enumerate(): adds a field with the position at which the stage stands.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operations/enumerate.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/index/enumerate_index.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

class EnumerateStage final : public OptionStage<EnumerateOptions> {
 public:
  // `place` is of its number among those of all such stages of the plan.
  EnumerateStage(const char* name, EnumerateOptions options, std::size_t place = 0)
      : OptionStage(name, std::move(options)), place_(place) {}

  void plan_into(PlanBuilder& builder) const override {
    builder.want_before_mixing("enumerate()");
    StreamPlan& plan = builder.plan();
    if (plan.batch) {
      throw ConfigError("enumerate() stands after batch(), where each batch knows its number",
                        "put enumerate() before batch(), or read the batch's step");
    }
    const std::size_t place = plan.numbers++;
    std::string counted;
    for (const StagePtr& before : plan.index_stages)
      counted += (counted.empty() ? "" : " | ") + before->describe();
    const bool renumbered = renumbers(plan.index_stages);
    const Operation number(define(Enumeration{
        .field = options().field, .place = place, .counted = std::move(counted), .may_change = renumbered}));
    plan.renumbered |= renumbered;
    plan.fields = number.definition().apply_to_sample(plan.fields);
    plan.sample_stages.emplace_back(PlannedOperation{.operation = number});
    plan.index_stages.push_back(std::make_shared<const EnumerateStage>(kEnumerate, options(), place));
  }
  void evaluate(EvaluationStages& stages) const override {
    stages.fields().push_back({.name = options().field, .dtype = DType::kI64, .shape = {}});
    stages.keep(shared_from_this());
  }
  StageTraits traits() const override { return {.keeps_order = true, .numbers = true}; }
  Indexed index(const StageInput& before) const override {
    return {.positions = before.positions,
            .stage = std::make_shared<const EnumerateIndex>(before.positions, place_)};
  }

  static constexpr const char* kEnumerate = "enumerate";

 private:
  std::size_t place_;
};

}  // namespace

Dataset Dataset::enumerate(EnumerateOptions options) const {
  return Dataset(
      add_stage(plan_, std::make_shared<const EnumerateStage>(EnumerateStage::kEnumerate, std::move(options))));
}

StageCall enumerate_call() {
  return stage_call<EnumerateOptions, [](const Dataset& data, const EnumerateOptions& options) {
    return data.enumerate(options);
  }>(EnumerateStage::kEnumerate);
}

}  // namespace headrace
