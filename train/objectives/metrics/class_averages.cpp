#include "headrace/train/objectives/metrics/class_averages.h"

#include "headrace/train/layers.h"

namespace headrace {

MetricValue averaged(Average average, const std::vector<double>& values, double micro,
                     const std::vector<double>& examples) {
  if (values.size() == 1) return {.values = values};
  const auto classes = static_cast<std::int64_t>(values.size());
  double sum = 0, weight = 0;
  for (std::size_t c = 0; c < values.size(); ++c) {
    const double mine = average == Average::kWeighted ? examples[c] : 1.0;
    sum += mine * values[c];
    weight += mine;
  }
  switch (average) {
    case Average::kNone: return {.values = values, .shape = {classes}};
    case Average::kMicro: return {.values = {micro}};
    case Average::kMacro:
    case Average::kWeighted: break;
  }
  return {.values = {weight > 0 ? sum / weight : 0.0}};
}

ScratchSpec score_scratch(const TensorView& result) { return {.device = {result}}; }

void count_scores(const MetricCall& call, ScoreBuckets buckets) {
  TensorView scores = as_matrix(call.result);
  const bool categorical = call.task.task == Task::kCategorical;
  buckets.sigmoid = call.task.from_logits && !categorical;
  if (call.task.from_logits && categorical) {
    const TensorView probabilities = as_matrix(call.device_scratch.front());
    call.kernels.softmax(call.stream, scores, probabilities);
    scores = probabilities;
  }
  const TensorView counts{call.table.data, {scores.shape[1], buckets.count, 2}, DType::kI64};
  call.kernels.count_scores(call.stream, scores, call.labels, buckets, call.scalars, counts);
}

}  // namespace headrace
