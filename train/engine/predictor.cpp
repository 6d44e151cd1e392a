#include "headrace/train/engine/predictor.h"

#include "headrace/devices/base/error.h"

namespace headrace {

Predictions predict(ModelState& model, Loader& loader, const EvaluationPass& pass, bool averaged_weights) {
  const Precision precision = model.compiled ? model.compiled->precision : Precision::kF32;
  Evaluator evaluator(model, loader,
                      {.program = {.mode = Mode::kPredict, .rows = loader.local_rows(), .precision = precision},
                       .nan = NanPolicy::kIgnore,
                       .averaged_weights = averaged_weights});
  const Shape& shape = model.graph->layer(model.graph->output()).shape();
  Predictions predictions;
  // Shards in order hold the rows of a global batch in order.
  evaluator.runner().on_done = [&](const StepSlot& step) {
    for (const ShardSlot& slot : step.shards) {
      predictions.values.insert(predictions.values.end(), slot.result,
                                slot.result + slot.examples * shape.elements());
      predictions.records.insert(predictions.records.end(), slot.records.begin(), slot.records.end());
    }
  };
  if (!evaluator.run(pass)) throw Error(ErrorCode::kCancelled, "the prediction was stopped");
  predictions.shape = shape.with_front(static_cast<std::int64_t>(predictions.records.size()));
  return predictions;
}

}  // namespace headrace
