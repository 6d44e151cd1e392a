// map(): operations on samples or, after batch(), on whole batches.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/json/named_parts.h"
#include "headrace/pipeline/plan/json/operation_json.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

constexpr const char* kMap = "map";

class MapStage final : public Stage {
 public:
  explicit MapStage(std::vector<Operation> operations) : operations_(std::move(operations)) {}

  std::string describe() const override {
    std::string text;
    for (const Operation& operation : operations_)
      text += (text.empty() ? "" : " | ") + headrace::describe(operation);
    return text;
  }
  nlohmann::ordered_json to_json(const PlanParts& parts, const std::string& path) const override {
    auto list = nlohmann::ordered_json::array();
    for (const Operation& operation : operations_) {
      list.push_back(
          plan_json::write_operation(operation, parts, fmt::format("{}.{}[{}]", path, kMap, list.size())));
    }
    return {{kMap, std::move(list)}};
  }
  void plan_into(PlanBuilder& plan) const override {
    for (const Operation& operation : operations_) plan.add_operation(operation);
  }
  void evaluate(EvaluationStages& stages) const override {
    std::vector<Operation> kept;
    for (const Operation& operation : operations_) {
      if (stages.keep_operation(operation)) kept.push_back(operation);
    }
    if (!kept.empty()) stages.keep(std::make_shared<const MapStage>(std::move(kept)));
  }
  StageTraits traits() const override { return {.processes = true}; }

 private:
  std::vector<Operation> operations_;
};

Dataset read_map(const Dataset& before, const plan_json::JsonPlace& place, const PlanOptions& plan,
                 const plan_json::Members& /*members*/) {
  std::optional<Operations> chain;
  for (const plan_json::JsonPlace& item : place.items()) {
    Operations one = plan_json::read_operation(item, plan);
    chain = chain ? std::move(*chain) | one : std::move(one);
  }
  if (!chain) place.refuse("a map without operations", "leave it out");
  return before.map(*chain);
}

}  // namespace

Dataset Dataset::map(const Operations& operations) const {
  return Dataset(add_stage(plan_, std::make_shared<const MapStage>(operations.list())));
}

StageCall map_call() { return {.name = kMap, .read = read_map}; }

}  // namespace headrace
