// Loss terms and their sums, what results are, and the average for custom loops.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/losses.h"

namespace headrace {

ScratchSpec LossFunction::scratch(const TensorView& /*result*/, const TensorView& /*labels*/) const { return {}; }

Loss Loss::against(const std::string& label_field) const {
  Loss loss = *this;
  for (LossTerm& term : loss.terms) term.label_field = label_field;
  return loss;
}

Loss Loss::of(const std::string& layer) const {
  Loss loss = *this;
  for (LossTerm& term : loss.terms) term.result = layer;
  return loss;
}

Loss Loss::weighted_by(const std::string& field) const {
  if (field.empty()) throw ConfigError("a loss is weighted by a field without a name");
  Loss loss = *this;
  for (LossTerm& term : loss.terms) term.weight_field = field;
  return loss;
}

Loss Loss::class_weighted(const std::vector<float>& weights) const {
  for (const float weight : weights) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    throw ConfigError(fmt::format("a class weighs {}; a weight must be a finite number of at least 0", weight));
  }
  Loss loss = *this;
  for (LossTerm& term : loss.terms) term.class_weights = weights;
  return loss;
}

Loss Loss::for_task(Task task, std::optional<bool> from_logits) const {
  Loss loss = *this;
  for (LossTerm& term : loss.terms) {
    term.task = task;
    term.from_logits = from_logits;
  }
  return loss;
}

std::string to_text(Task task) { return choice_names(task).at(static_cast<std::size_t>(task)); }

std::string to_text(const ResultTask& task) {
  if (task.task == Task::kRegression) return to_text(task.task);
  return to_text(task.task) + (task.from_logits ? ", from logits" : ", from probabilities");
}

Task task_named(const std::string& word) {
  static constexpr auto kWords = choice_names(Task{});
  const auto found = std::ranges::find(kWords, word);
  if (found != kWords.end()) return static_cast<Task>(found - kWords.begin());
  throw ConfigError(fmt::format("there is no task '{}'", word),
                    fmt::format("there are {}", fmt::join(kWords, ", ")));
}

Loss operator*(float weight, const Loss& loss) {
  if (!(weight > 0) || !std::isfinite(weight)) {
    throw ConfigError(fmt::format("a loss is weighted with {}; a weight must be a positive number", weight));
  }
  Loss weighted = loss;
  for (LossTerm& term : weighted.terms) term.weight *= weight;
  return weighted;
}

Loss operator+(const Loss& a, const Loss& b) {
  if (a.reduction != b.reduction) {
    throw ConfigError("a sum of losses whose reductions differ", "give all of them the same reduction");
  }
  Loss sum = a;
  sum.terms.insert(sum.terms.end(), b.terms.begin(), b.terms.end());
  return sum;
}

double compute_average_loss(std::span<const float> losses, std::int64_t global_examples) {
  if (global_examples < static_cast<std::int64_t>(losses.size())) {
    throw ConfigError(fmt::format("{} losses of a global batch of {} examples", losses.size(), global_examples),
                      "give the number of examples of all replicas together");
  }
  double sum = 0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  return global_examples > 0 ? sum / static_cast<double>(global_examples) : 0.0;
}

double compute_average_loss(const TensorView& losses, std::int64_t global_examples) {
  if (losses.shape.rank() == 0) return compute_average_loss(0.0, global_examples);
  if (losses.shape.rank() != 1 || losses.dtype != DType::kF32) {
    throw ConfigError(fmt::format("losses of shape {} and type {}; one float32 an example is needed",
                                  losses.shape.to_string(), to_string(losses.dtype)));
  }
  return compute_average_loss({losses.as<float>(), static_cast<std::size_t>(losses.elements())}, global_examples);
}

double compute_average_loss(double, std::int64_t) {
  throw ConfigError(
      "the average loss is asked for of a single number, which is the sum or the mean of a part of "
      "the batch",
      "compute one loss an example, without a reduction");
}

}  // namespace headrace
