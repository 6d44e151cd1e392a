#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/model/value_types.h"
#include "headrace/train/step/objective.h"
#include "headrace/train/step/program.h"
#include "headrace/train/step/update_plan.h"

namespace headrace {

void Model::compile(const CompileOptions& options) {
  check_objective(*state_->graph, options.loss, options.metrics);
  if (!state_->variables.parameters(0).defined())
    throw ConfigError("the net has no parameters: there is nothing to train");
  VariableLayout layout = state_->layout;
  layout.freeze(state_->frozen);
  const UpdatePlan checked(*state_->graph, layout, options.optimizer);
  const Program possible(*state_->graph, layout, {});
  state_->layout.freeze(state_->frozen);
  const StorageTypes types = storage_types(strategy(), options.precision);
  state_->variables.keep_rounded(types.product_weights == DType::kBF16);
  state_->compiled = options;
  ++state_->compilations;
  state_->step = 0;
  state_->restored = nullptr;
  state_->run.clear();
  state_->learning_rate_scale = 1;
  create_optimizer_memory(*state_, options.optimizer);
}

std::vector<OutputTask> Model::tasks() const {
  std::vector<OutputTask> tasks;
  for (std::size_t output = 0; output < graph().outputs().size(); ++output) {
    const ResultInfo info = result_info(graph(), state_->compiled ? state_->compiled->loss : Loss(), output);
    tasks.push_back({.layer = graph().name(graph().outputs()[output]), .task = info.task});
  }
  return tasks;
}

std::string Model::summary() const {
  std::string text = summarize(graph());
  if (!state_->compiled) return text;
  const std::vector<OutputTask> known = tasks();
  for (std::size_t output = 0; output < known.size(); ++output) {
    const auto& task = known[output].task;
    text += fmt::format("Results of '{}': {}; {}\n", known[output].layer,
                        task ? to_text(*task) : "nothing says what they are",
                        result_info(graph(), state_->compiled->loss, output).why);
  }
  if (state_->compiled->loss.reduction == Reduction::kSum) {
    text += "The loss is summed over a step's examples; what is reported is its mean\n";
  }
  return text;
}

}  // namespace headrace
