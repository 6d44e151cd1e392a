// Limits of gradients and of their norm.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

TEST(GradientClipping, ALimitThatIsNeverReachedChangesNoBit) {
  for (const int accumulate : {1, 3}) {
    std::string hashes[2];
    for (const bool clips : {false, true}) {
      Optimizer optimizer = grouped();
      if (clips) optimizer.clip = {.max_norm = 1e6F, .max_value = 1e6F};
      Training training(2);
      Model model = compiled(training.strategy, small_cnn, optimizer);
      model.fit(blobs(60, {6, 6, 2}).batch({.global_batch = 8}),
                {.epochs = 2, .verbose = 0, .step = {.accumulate = accumulate}});
      hashes[clips] = model.weights_sha256();
    }
    EXPECT_EQ(hashes[0], hashes[1]) << accumulate;
  }
}

// Plain SGD moves by rate times gradient: where the norm is limited, the move is not longer.
TEST(GradientClipping, NoStepIsLongerThanTheLimit) {
  for (const int replicas : {1, 2, 4}) {
    for (const int accumulate : {1, 2}) {
      Optimizer optimizer = sgd(0.5F);
      optimizer.clip = {.max_norm = 1e-2F};
      Training training(replicas);
      Model model = compiled(training.strategy, small_mlp, optimizer);
      const Dataset data = blobs(64).batch({.global_batch = 16});
      for (std::uint64_t step = 1; step <= 4; ++step) {
        const auto before = variables_of(model);
        model.fit(data, {.epochs = 4, .verbose = 0, .step = {.accumulate = accumulate}, .stop_after_steps = step});
        const auto after = variables_of(model);
        double squares = 0;
        for (std::size_t v = 0; v < before.size(); ++v) {
          for (std::size_t i = 0; i < before[v].size(); ++i) squares += std::pow(after[v][i] - before[v][i], 2);
        }
        EXPECT_NEAR(std::sqrt(squares), 0.5 * 1e-2, 1e-6) << replicas << " replicas, step " << step;
      }
    }
  }
}

// A variable whose rate has ended counts for nothing, whether its gradient is still computed or not.
TEST(GradientClipping, WhatHasEndedCountsForNothing) {
  Optimizer ended = sgd(0.5F);
  ended.clip = {.max_norm = 1e-3F};
  Optimizer all = ended;
  ended.groups = {{.takes = VariableRule::named("dense/*"),
                   .rule = SgdOptions{},
                   .learning_rate = Schedule::piecewise({.rates = {0.5F, 0}, .boundaries = {2}})}};
  double moved[2] = {};
  for (const bool ends : {false, true}) {
    Training training(2);
    Model model = compiled(training.strategy, small_mlp, ends ? ended : all);
    const Dataset data = blobs(64).batch({.global_batch = 16});
    model.fit(data, {.verbose = 0, .stop_after_steps = 2});
    const std::vector<float> frozen = model.read_variable("dense/weights");
    const std::vector<float> before = model.read_variable("dense_1/weights"),
                             bias = model.read_variable("dense_1/bias");
    model.fit(data, {.verbose = 0, .stop_after_steps = 3});
    const std::vector<float> after = model.read_variable("dense_1/weights");
    const std::vector<float> bias_after = model.read_variable("dense_1/bias");
    for (std::size_t i = 0; i < after.size(); ++i) moved[ends] += std::pow(after[i] - before[i], 2);
    for (std::size_t i = 0; i < bias.size(); ++i) moved[ends] += std::pow(bias_after[i] - bias[i], 2);
    EXPECT_EQ(model.read_variable("dense/weights") == frozen, ends);
  }
  EXPECT_NEAR(std::sqrt(moved[true]), 0.5e-3, 1e-7);
  EXPECT_LT(std::sqrt(moved[false]), 0.48e-3);
}

}  // namespace
}  // namespace headrace::test
