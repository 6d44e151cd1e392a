#include "headrace/devices/base/error.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/model/storage_types.h"
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

}  // namespace headrace
