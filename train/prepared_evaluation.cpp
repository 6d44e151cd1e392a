#include "headrace/train/prepared_evaluation.h"

#include "headrace/devices/base/clock.h"
#include "headrace/train/engine/evaluation_loader.h"
#include "headrace/train/engine/evaluator.h"
#include "headrace/train/engine/model_state.h"
#include "headrace/train/engine/one_run.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

BatchRunnerOptions runner_options(const ModelState& model, const Loader& loader) {
  return {
      .program = {.mode = Mode::kEvaluate, .rows = loader.local_rows(), .precision = model.compiled->precision},
      .loss = model.compiled->loss};
}

}  // namespace

class PreparedEvaluation::Impl {
 public:
  Impl(Model& model, const Dataset& data, const EvaluateOptions& options)
      : steps_(options.steps),
        progress_(options.progress),
        once_(model, "evaluation"),
        loader_(data, model.strategy().devices(), loader_options(model.state(), Mode::kEvaluate, options)),
        evaluator_(model.state(), loader_, runner_options(model.state(), loader_), options.views) {}

  void warm_up() {
    once_.check_model();
    evaluator_.warm_up();
  }

  Evaluation run() {
    once_.begin();
    const Stopwatch time;
    const MetricSums sums = evaluator_.run(steps_, progress_);
    loader_.stats().require_good();
    return {.loss = mean_loss(sums),
            .accuracy = mean_accuracy(sums),
            .examples = sums.examples,
            .seconds = time.seconds()};
  }

 private:
  std::uint64_t steps_;
  std::function<void(std::uint64_t, std::uint64_t)> progress_;
  OneRun once_;  // before the others: the model has to be compiled
  Loader loader_;
  Evaluator evaluator_;
};

PreparedEvaluation::PreparedEvaluation(Model& model, const Dataset& data, const EvaluateOptions& options)
    : impl_(std::make_unique<Impl>(model, data, options)) {}

PreparedEvaluation::~PreparedEvaluation() = default;

void PreparedEvaluation::warm_up() { impl_->warm_up(); }
Evaluation PreparedEvaluation::run() { return impl_->run(); }

}  // namespace headrace
