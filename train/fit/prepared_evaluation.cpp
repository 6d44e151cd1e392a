#include "headrace/train/prepared_evaluation.h"

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/fit/evaluator.h"
#include "headrace/train/fit/input_options.h"
#include "headrace/train/fit/one_run.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

BatchQueueOptions queue_options(const ModelState& model, const Loader& loader, const EvaluateOptions& options) {
  return {
      .program = {.mode = Mode::kEvaluate, .rows = loader.local_rows(), .precision = model.compiled->precision},
      .loss = model.compiled->loss,
      .metrics = model.compiled->metrics,
      .averaged_weights = options.averaged_weights,
      .virtual_shards = options.virtual_shards};
}

}  // namespace

class PreparedEvaluation::Impl {
 public:
  Impl(Model& model, const Dataset& data, const EvaluateOptions& options)
      : pass_{.steps = options.steps, .progress = options.progress, .stop = options.stop},
        once_(model, "evaluation"),
        shards_(shard_devices(model.strategy(), options.virtual_shards)),
        loader_(data, shards_, evaluation_input(model.state(), Mode::kEvaluate, options)),
        evaluator_(model.state(), loader_, queue_options(model.state(), loader_, options), options.views) {}

  void warm_up() {
    once_.check_model();
    evaluator_.warm_up();
  }

  Evaluation run() {
    once_.begin();
    const Stopwatch time;
    const std::optional<MetricSums> sums = evaluator_.run(pass_);
    if (!sums) throw Error(ErrorCode::kCancelled, "the evaluation was stopped");
    loader_.stats().require_good();
    return {.loss = mean_loss(*sums),
            .accuracy = mean_accuracy(*sums),
            .examples = sums->examples,
            .seconds = time.seconds(),
            .metrics = evaluator_.queue().totals().metrics()};
  }

 private:
  EvaluationPass pass_;
  OneRun once_;  // before the others: the model has to be compiled
  DeviceGroup shards_;
  Loader loader_;
  Evaluator evaluator_;
};

PreparedEvaluation::PreparedEvaluation(Model& model, const Dataset& data, const EvaluateOptions& options)
    : impl_(std::make_unique<Impl>(model, data, options)) {}

PreparedEvaluation::~PreparedEvaluation() = default;

void PreparedEvaluation::warm_up() { impl_->warm_up(); }
Evaluation PreparedEvaluation::run() { return impl_->run(); }

}  // namespace headrace
