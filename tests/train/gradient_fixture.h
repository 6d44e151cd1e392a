// Gradients of whole nets against central differences of the loss.
#pragma once

#include "headrace/pipeline/loader.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {

struct GradientCase {
  std::string name;
  Net net;
  Shape shape;
  float label_smoothing = 0;
  int replicas = 1;
  std::vector<std::string> outputs = {};  // a loss each; empty: of the first one
};

inline std::ostream& operator<<(std::ostream& out, const GradientCase& each) { return out << each.name; }

// The loss and gradients of one fixed batch, five examples of eight, at the model's present parameters.
class GradientProbe {
 public:
  GradientProbe(Training& training, const GradientCase& given)
      : strategy_(training.strategy),
        model_(compiled(training.strategy, given.net)),
        loader_(blobs(kExamples, given.shape, 3, kDataSeed).batch({.global_batch = kBatch}), training.devices,
                options()),
        trainer_(training.strategy, compile(given), loader_, {.seed = 5}) {}

  double loss() {
    trainer_.reset_metrics();
    trainer_.discard_gradients();
    trainer_.gradients(std::move(*trainer_.take()));
    return mean_loss(trainer_.finish());
  }

  // Summed over replicas.
  std::vector<float> gradient(const Variable& variable) {
    loss();
    std::vector<float> sum(static_cast<std::size_t>(variable.spec.shape.elements()));
    for (int r = 0; r < strategy_.local_replicas(); ++r) {
      const std::vector<float> all = gradients_of(model_, strategy_, r);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += all[static_cast<std::size_t>(variable.offset) + i];
    }
    return sum;
  }

  Model& model() { return model_; }

 private:
  static constexpr std::int64_t kExamples = 5, kBatch = 8;  // three rows of padding
  // With 1 a max pool meets two values that differ by less than the step.
  static constexpr std::uint64_t kDataSeed = 2;

  static LoaderOptions options() {
    LoaderOptions options;
    options.epochs = 1'000'000;
    options.threads = 1;
    return options;
  }

  Model& compile(const GradientCase& given) {
    const Loss one = sparse_categorical_crossentropy({.label_smoothing = given.label_smoothing});
    Loss loss = given.outputs.empty() ? one : one.of(given.outputs.front());
    for (std::size_t i = 1; i < given.outputs.size(); ++i) loss = loss + 0.5F * one.of(given.outputs[i]);
    model_.compile({.loss = loss});
    return model_;
  }

  Strategy& strategy_;
  Model model_;
  Loader loader_;
  Trainer trainer_;
};

inline double difference(GradientProbe& probe, const Variable& variable, std::vector<float> values,
                         std::size_t at) {
  constexpr float kStep = 1e-3F;
  const float value = values[at];
  values[at] = value + kStep;
  probe.model().write_variable(variable.name, values);
  const double above = probe.loss();
  values[at] = value - kStep;
  probe.model().write_variable(variable.name, values);
  const double below = probe.loss();
  values[at] = value;
  probe.model().write_variable(variable.name, values);
  return (above - below) / (2.0 * kStep);
}

// The loss is right to about 1e-7, so a difference quotient to about 1e-4; an average gradient here is 1e-2 or
// more. What the step crosses of a kink adds up to 1 % in norm.
inline void expect_gradients_equal_differences(const GradientCase& given) {
  Training training(given.replicas);
  GradientProbe probe(training, given);
  for (const Variable& variable : probe.model().state().layout.variables()) {
    if (variable.spec.role != VariableRole::kTrained) continue;
    const std::vector<float> gradient = probe.gradient(variable);
    const std::vector<float> values = probe.model().read_variable(variable.name);
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = difference(probe, variable, values, i);
      error += (expected - gradient[i]) * (expected - gradient[i]);
      norm += expected * expected;
    }
    EXPECT_LE(std::sqrt(error), 0.01 * std::sqrt(norm) + 1e-4 * std::sqrt(static_cast<double>(values.size())))
        << variable.name << ", norm " << std::sqrt(norm);
    EXPECT_GT(norm, 0.0) << variable.name;
  }
}

}  // namespace headrace::test
