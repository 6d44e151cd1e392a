#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/fit/input_options.h"
#include "headrace/train/fit/predictor.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/prepared_evaluation.h"
#include "headrace/train/prepared_fit.h"
#include "headrace/train/strategy.h"

namespace headrace {

History Model::fit(const Dataset& train, const FitOptions& options) {
  return PreparedFit(*this, train, options).run();
}

Evaluation Model::evaluate(const Dataset& data, const EvaluateOptions& options) {
  const Stopwatch time;
  if (state_->input.plan.empty()) state_->input = describe_input(data, options.views);
  Evaluation evaluation = PreparedEvaluation(*this, data, options).run();
  evaluation.seconds = time.seconds();
  return evaluation;
}

Predictions Model::predict(const Dataset& data, const EvaluateOptions& options) {
  if (!options.views.empty()) {
    throw ConfigError("predict() gives the net's own results and takes no views", "use evaluate(), or no views");
  }
  Loader loader(data, strategy().devices(), evaluation_input(*state_, Mode::kPredict, options));
  return headrace::predict(*state_, loader,
                           {.steps = options.steps, .progress = options.progress, .stop = options.stop},
                           options.averaged_weights);
}

}  // namespace headrace
