#include "headrace/train/fit/predictor.h"

#include "headrace/devices/base/error.h"

namespace headrace {

Predictions predict(ModelState& model, Loader& loader, const EvaluationPass& pass, bool averaged_weights) {
  const Precision precision = model.compiled ? model.compiled->precision : Precision::kF32;
  Evaluator evaluator(model, loader,
                      {.program = {.mode = Mode::kPredict, .rows = loader.local_rows(), .precision = precision},
                       .nan = NanPolicy::kIgnore,
                       .averaged_weights = averaged_weights});
  const Graph& graph = *model.graph;
  Predictions predictions;
  std::vector<std::vector<float>*> values{&predictions.values};
  predictions.others.resize(graph.outputs().size() - 1);
  for (OutputValues& other : predictions.others) values.push_back(&other.values);
  // Shards in order hold the rows of a global batch in order.
  const std::int64_t rows = loader.local_rows();
  evaluator.queue().on_done = [&](const StepSlot& step) {
    for (const ShardSlot& slot : step.shards) {
      const float* from = slot.result;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t elements = graph.layer(graph.outputs()[i]).shape().elements();
        values[i]->insert(values[i]->end(), from, from + slot.examples * elements);
        from += rows * elements;
      }
      predictions.records.insert(predictions.records.end(), slot.records.begin(), slot.records.end());
    }
  };
  if (!evaluator.run(pass)) throw Error(ErrorCode::kCancelled, "the prediction was stopped");
  const auto examples = static_cast<std::int64_t>(predictions.records.size());
  predictions.shape = graph.layer(graph.output()).shape().with_front(examples);
  for (std::size_t i = 0; i < predictions.others.size(); ++i) {
    const int output = graph.outputs()[i + 1];
    predictions.others[i].layer = graph.name(output);
    predictions.others[i].shape = graph.layer(output).shape().with_front(examples);
  }
  return predictions;
}

}  // namespace headrace
