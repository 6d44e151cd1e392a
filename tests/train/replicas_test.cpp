// The number of replicas changes where the work is done, not what comes out.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

struct ReplicasOutcome {
  History history;
  std::vector<std::vector<float>> variables;
  double evaluated = 0;
};

struct Run {
  Net net = small_cnn;
  std::int64_t examples = 100;
  std::int64_t batch = 16;
  int replicas = 1;
  int accumulate = 1;
  Optimizer optimizer = adam(1e-2F);
  Reduction reduction = Reduction::kMean;
};

ReplicasOutcome train(const Run& run) {
  Training training(run.replicas);
  Model model = training.strategy.build(run.net, {.seed = 3});
  model.compile(
      {.optimizer = run.optimizer, .loss = sparse_categorical_crossentropy({.reduction = run.reduction})});
  const Dataset data = blobs(run.examples, {6, 6, 2}).batch({.global_batch = run.batch});
  ReplicasOutcome outcome;
  outcome.history =
      model.fit(data, {.epochs = 3, .validation = data, .verbose = 0, .step = {.accumulate = run.accumulate}});
  model.check_mirrored();
  outcome.variables = variables_of(model);
  for (const std::string& name : model.optimizer_variable_names()) {
    if (!name.ends_with("moment")) outcome.variables.push_back(model.read_variable(name));
  }
  outcome.evaluated = model.evaluate(data).loss;
  return outcome;
}

void expect_equal(const ReplicasOutcome& a, const ReplicasOutcome& b, double tolerance = 1e-5 * slack()) {
  for (const char* name : {"loss", "accuracy", "val_loss", "val_accuracy"}) {
    ASSERT_EQ(a.history[name].size(), b.history[name].size());
    for (std::size_t i = 0; i < a.history[name].size(); ++i) {
      EXPECT_NEAR(a.history[name][i], b.history[name][i], tolerance) << name << " of epoch " << i;
    }
  }
  for (std::size_t v = 0; v < a.variables.size(); ++v) {
    for (std::size_t i = 0; i < a.variables[v].size(); ++i) {
      ASSERT_NEAR(a.variables[v][i], b.variables[v][i], 100 * tolerance) << "variable " << v << "[" << i << "]";
    }
  }
  EXPECT_NEAR(a.evaluated, b.evaluated, tolerance);
}

class ReplicasTest : public testing::TestWithParam<int> {};

TEST_P(ReplicasTest, TrainAsOneDoesWithDropoutAndAPartialLastBatch) {
  expect_equal(train({}), train({.replicas = GetParam()}));
}

TEST_P(ReplicasTest, TrainAsOneDoesWhenTheBatchIsNotDivisible) {
  expect_equal(train({.examples = 53, .batch = 7}), train({.examples = 53, .batch = 7, .replicas = GetParam()}));
}

TEST_P(ReplicasTest, TrainAsOneDoesWhenSomeHaveNoRows) {
  expect_equal(train({.examples = 3, .batch = 10}), train({.examples = 3, .batch = 10, .replicas = GetParam()}));
}

TEST_P(ReplicasTest, TrainAsOneDoesWithParameterGroups) {
  // A GPU's Muon rounds its products to bf16, the other way where sums differ in their last bit.
  expect_equal(train({.optimizer = grouped()}), train({.replicas = GetParam(), .optimizer = grouped()}),
               on_gpu() ? 0.02 : 1e-5);
}

TEST_P(ReplicasTest, TrainAsOneDoesWithLimitsLookaheadAndAverages) {
  const Optimizer optimizer = with_all_around(adam(Schedule::one_cycle({.peak = 1e-2F, .total_steps = 30})));
  for (const int accumulate : {1, 3}) {
    expect_equal(train({.accumulate = accumulate, .optimizer = optimizer}),
                 train({.replicas = GetParam(), .accumulate = accumulate, .optimizer = optimizer}));
  }
}

TEST_P(ReplicasTest, AccumulatedSumsEqualThoseOfALargerBatch) {
  expect_equal(train({.batch = 32, .optimizer = sgd(2e-3F), .reduction = Reduction::kSum}),
               train({.batch = 8,
                      .replicas = GetParam(),
                      .accumulate = 4,
                      .optimizer = sgd(2e-3F),
                      .reduction = Reduction::kSum}));
}

TEST_P(ReplicasTest, AccumulationEqualsALargerBatch) {
  expect_equal(train({.batch = 32}), train({.batch = 8, .replicas = GetParam(), .accumulate = 4}));
}

TEST_P(ReplicasTest, AccumulationOfAnUnevenTailEqualsALargerBatch) {
  expect_equal(train({.examples = 53, .batch = 21}),
               train({.examples = 53, .batch = 7, .replicas = GetParam(), .accumulate = 3}));
}

INSTANTIATE_TEST_SUITE_P(R, ReplicasTest, testing::Values(1, 2, 4));

TEST(Replicas, StayInSyncWithBatchNorm) {
  for (const std::int64_t examples : {40, 33, 3}) {
    const ReplicasOutcome outcome = train({.net = norm_cnn, .examples = examples, .batch = 16, .replicas = 4});
    EXPECT_TRUE(std::isfinite(outcome.evaluated));
  }
}

TEST(Replicas, AverageTheirRunningStatistics) {
  // Two replicas see records of constant value 1 and 3; one replica of all sees the mean of their means, too.
  std::vector<float> images;
  for (const float value : {1.0F, 1.0F, 3.0F, 3.0F}) images.insert(images.end(), 8, value);
  const Dataset data = labelled({2, 2, 2}, images, {0, 1, 0, 1}).batch({.global_batch = 4});
  const Net net = [](Graph& g) {
    return g.dense(g.flatten(g.batch_norm(g.input("image", {2, 2, 2}), {.momentum = 0.5F})), 2);
  };
  Training training(2);
  Model model = compiled(training.strategy, net);
  model.fit(data, {.verbose = 0});
  for (int replica = 0; replica < 2; ++replica) {
    for (const float mean : model.read_variable("batch_norm/running_mean", replica)) EXPECT_FLOAT_EQ(mean, 1.0F);
    for (const float var : model.read_variable("batch_norm/running_var", replica)) EXPECT_FLOAT_EQ(var, 0.5F);
  }
}

TEST(Replicas, TheSameSeedGivesTheSameBits) {
  const auto hash = [](std::uint64_t seed, int replicas) {
    Training training(replicas);
    Model model = compiled(training.strategy, small_cnn);
    model.fit(blobs(50, {6, 6, 2}).shuffle().batch({.global_batch = 16}),
              {.epochs = 2, .verbose = 0, .input = {.seed = seed}});
    return model.weights_sha256();
  };
  for (const int replicas : {1, 2}) {
    EXPECT_EQ(hash(1, replicas), hash(1, replicas));
    EXPECT_NE(hash(1, replicas), hash(2, replicas));
  }
}

TEST(Replicas, CountEveryViewOfEveryExample) {
  const Dataset data = blobs(53, {6, 6, 2}).batch({.global_batch = 7});
  std::vector<Evaluation> seen;
  for (const int replicas : {1, 2, 4}) {
    Training training(replicas);
    Model model = compiled(training.strategy, small_cnn);
    seen.push_back(model.evaluate(data, {.views = mirrored_and_shifted_views()}));
    EXPECT_EQ(seen.back().examples, 53);
    EXPECT_EQ(seen.back().accuracy, seen.front().accuracy);
    EXPECT_NEAR(seen.back().loss, seen.front().loss, 1e-6 * slack());
  }
}

TEST(Replicas, GiveBackAllMemory) {
  DeviceGroup devices = test_devices(2, DeviceNeed::kKernels);
  {
    Strategy strategy(devices, {.announce = false});
    Model model = compiled(strategy, norm_cnn);
    const Dataset data = blobs(30, {6, 6, 2}).batch({.global_batch = 8});
    model.fit(data, {.validation = data, .verbose = 0, .step = {.accumulate = 2}});
    model.predict(data);
    model.evaluate(data, {.views = mirrored_views()});
    EXPECT_GT(devices[1].memory_use().device_bytes, 0U);
  }
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(devices[r].memory_use().device_bytes, 0U);
    EXPECT_EQ(devices[r].memory_use().pinned_bytes, 0U);
  }
}

}  // namespace
}  // namespace headrace::test
