// Norms of gradients: told, and limited.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// The norms of gradients that a fit reports on request.

double norm_of(const std::vector<float>& values, std::int64_t begin, std::int64_t elements) {
  double squares = 0;
  for (std::int64_t i = begin; i < begin + elements; ++i) {
    squares += std::pow(static_cast<double>(values[static_cast<std::size_t>(i)]), 2);
  }
  return std::sqrt(squares);
}

class GradientNormsTest : public testing::TestWithParam<int> {
 protected:
  Dataset data_ = blobs(50, {6, 6, 2}).batch({.global_batch = 16});
};

// Against the gradients as they lie in the arena, which the update leaves alone; in both forms of the step, and
// with accumulation, whose last step of the pass has fewer batches.
TEST_P(GradientNormsTest, AreThoseOfTheSummedGradients) {
  for (const int accumulate : {1, 3}) {
    for (const bool pieces : {false, true}) {
      if (pieces && accumulate > 1) continue;
      Training training(GetParam());
      Model model = compiled(training.strategy, norm_cnn);
      Loader loader(data_, training.devices);
      Trainer trainer(training.strategy, model, loader,
                      {.step = {.accumulate = accumulate, .gradient_norms = true}});
      const auto step = [&] {
        if (!pieces) return trainer.step();
        std::optional<GlobalBatch> batches = trainer.take();
        if (!batches) return false;
        trainer.gradients(std::move(*batches));
        trainer.all_reduce();
        trainer.apply_gradients();
        return true;
      };
      while (step()) {
        const std::optional<GradientNorms> norms = trainer.gradient_norms();
        ASSERT_TRUE(norms);
        const std::vector<float> arena = gradients_of(model, training.strategy);
        std::size_t next = 0;
        for (const Variable& variable : model.state().layout.variables()) {
          if (variable.spec.role != VariableRole::kTrained) continue;
          ASSERT_LT(next, norms->by_variable.size());
          const auto& [name, norm] = norms->by_variable[next++];
          EXPECT_EQ(name, variable.name);
          EXPECT_NEAR(norm, norm_of(arena, variable.offset, variable.spec.shape.elements()), 1e-5 * norm) << name;
        }
        EXPECT_EQ(next, norms->by_variable.size());
        EXPECT_NEAR(norms->all, norm_of(arena, 0, static_cast<std::int64_t>(arena.size())), 1e-5 * norms->all);
        EXPECT_GT(norms->all, 0);
      }
    }
  }
}

TEST_P(GradientNormsTest, ChangeNoResultAndAreOffUnlessAskedFor) {
  std::vector<std::string> hashes;
  for (const bool wanted : {false, true}) {
    Training training(GetParam());
    Model model = compiled(training.strategy, norm_cnn);
    int reports = 0;
    const Callback callback{.on_step =
                                [&](const StepReport& report, FitControl&) {
                                  EXPECT_EQ(report.gradient_norms.has_value(), wanted);
                                  ++reports;
                                },
                            .every_steps = 2};
    const History history =
        model.fit(data_, {.epochs = 2, .callbacks = {callback}, .verbose = 0, .step = {.gradient_norms = wanted}});
    EXPECT_EQ(history.has("gradient_norm"), wanted);
    EXPECT_EQ(reports, 4);
    hashes.push_back(model.weights_sha256());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

// Both are of the gradients before the clipping; the clipping counts the same variables here.
TEST_P(GradientNormsTest, WhereTheNormIsLimitedItIsKnownAnyway) {
  Optimizer optimizer = sgd(0.1F);
  optimizer.clip = {.max_norm = 0.01F};
  std::vector<double> norms;
  for (const bool wanted : {false, true}) {
    Training training(GetParam());
    Model model = compiled(training.strategy, norm_cnn, optimizer);
    const Callback callback{.on_step =
                                [&](const StepReport& report, FitControl&) {
                                  ASSERT_TRUE(report.gradient_norms);
                                  EXPECT_EQ(report.gradient_norms->by_variable.empty(), !wanted);
                                  norms.push_back(report.gradient_norms->all);
                                },
                            .every_steps = 1};
    model.fit(data_, {.callbacks = {callback}, .verbose = 0, .step = {.gradient_norms = wanted}});
  }
  ASSERT_EQ(norms.size(), 8U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(norms[i], 0.01) << "more than the limit: it is the norm before";
    EXPECT_NEAR(norms[i], norms[i + 4], 1e-6 * norms[i]);
  }
}

TEST(GradientNorms, OfVirtualShardsAreThoseOfTheirSum) {
  std::vector<double> norms;
  for (const int replicas : {1, 2}) {
    Training training(replicas);
    Model model = compiled(training.strategy, small_cnn);
    const History history = model.fit(blobs(48, {6, 6, 2}).batch({.global_batch = 16}),
                                      {.verbose = 0, .step = {.virtual_shards = 4, .gradient_norms = true}});
    norms.push_back(history["gradient_norm"][0]);
    const std::vector<float> arena = gradients_of(model, training.strategy);
    EXPECT_NEAR(norms.back(), norm_of(arena, 0, static_cast<std::int64_t>(arena.size())), 1e-5 * norms.back());
  }
  EXPECT_EQ(norms[0], norms[1]);
}

INSTANTIATE_TEST_SUITE_P(R, GradientNormsTest, testing::Values(1, 3));

TEST(ReplicaTimes, AddUpToThoseOfAll) {
  Training training(3);
  Model model = compiled(training.strategy, small_mlp);
  const Dataset data = blobs(60).batch({.global_batch = 6});
  const Callback callback{.on_epoch_end = [](const EpochReport& report, FitControl&) {
    ASSERT_EQ(report.local_replicas.size(), 3U);
    StepTimes sum;
    for (const StepTimes& times : report.local_replicas) {
      EXPECT_EQ(times.batches, 10U);
      EXPECT_GT(times.elapsed_ns, 0);
      sum.elapsed_ns += times.elapsed_ns;
      sum.input_stall_ns += times.input_stall_ns;
      sum.exposed_copy_ns += times.exposed_copy_ns;
      sum.idle_ns += times.idle_ns;
    }
    EXPECT_DOUBLE_EQ(sum.input_stall_fraction(), report.input_stall_fraction);
    EXPECT_DOUBLE_EQ(sum.exposed_copy_fraction(), report.exposed_copy_fraction);
    EXPECT_DOUBLE_EQ(sum.device_idle_fraction(), report.device_idle_fraction);
  }};
  model.fit(data, {.epochs = 2, .callbacks = {callback}, .verbose = 0});
}

// Limits of gradients and of their norm.

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
