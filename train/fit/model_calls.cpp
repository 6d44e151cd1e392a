#include "headrace/devices/base/clock.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit/fit_loop.h"
#include "headrace/train/fit/options_of_fit.h"
#include "headrace/train/fit/worker_agreement.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"

namespace headrace {

History Model::fit(const Dataset& train, const FitOptions& options) {
  return PreparedFit(*this, train, options).run();
}

Evaluation Model::evaluate(const Dataset& data, const EvaluateOptions& options) {
  const Stopwatch time;
  if (state_->input.plan.empty()) state_->input = describe_input(data, options.views);
  Evaluation evaluation = with_workers(strategy(), [&] { return Evaluator(*this, data, options).evaluate(); });
  evaluation.seconds = time.seconds();
  return evaluation;
}

Predictions Model::predict(const Dataset& data, const EvaluateOptions& options) {
  return with_workers(strategy(), [&] { return Evaluator(*this, data, options, Mode::kPredict).predict(); });
}

PreparedFit::PreparedFit(Model& model, const Dataset& train, const FitOptions& options) {
  model.state().require_compiled("fit()");
  const ScanPoll poll(options.input.while_waiting);  // counting steps may need a filter's pass
  with_workers(model.strategy(), [&] {
    if (const auto& workers = model.strategy().workers()) require_same_options(*workers, options);
    const std::optional<HeldOut> split = split_of_fit(train, options);
    if (!split) {
      loop_ = std::make_unique<FitLoop>(model, train, options);
      return;
    }
    FitOptions divided = options;
    divided.validation = split->validation;
    divided.validation_split = 0;
    loop_ = std::make_unique<FitLoop>(model, split->train, divided);
  });
}

PreparedFit::~PreparedFit() = default;

void PreparedFit::warm_up() { loop_->warm_up(); }
const History& PreparedFit::history() const noexcept { return loop_->history(); }
History PreparedFit::run() {
  return with_workers(loop_->strategy(), [&] { return loop_->run(); });
}

}  // namespace headrace
