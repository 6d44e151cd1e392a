// What does not depend on the device, nor on how many there are.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// What training computes does not depend on the device: step by step, against one CPU replica.

constexpr int kSteps = 50;

Node net(Graph& g) {
  Node x = g.conv(g.input("image", {8, 8, 3}), 8, {.bias = false});
  x = g.silu(g.batch_norm(x, {.momentum = 0.6F}));
  x = g.conv(g.dropout(x, 0.2F), 8, {.stride = 2});
  x = g.gelu(g.batch_norm(x, {.momentum = 0.6F}));
  return g.dense(g.flatten(x), 4);
}

// Noise, which no net learns in 50 steps: the loss stays large enough to differ.
Dataset noise() {
  Philox random({.seed = 6});
  std::vector<float> images(400 * 8 * 8 * 3);
  for (float& value : images) value = random.uniform() - 0.5F;
  std::vector<std::int64_t> labels(400);
  for (std::int64_t& label : labels) label = random.below(4);
  return labelled({8, 8, 3}, images, labels).shuffle().batch({.global_batch = 16});
}

Optimizer agreeing_groups(Optimizer optimizer) {
  optimizer.groups = {{.takes = VariableRule::of_rank(1),
                       .rule = SgdOptions{.momentum = 0.9F, .weight_decay = 1e-3F, .nesterov = true},
                       .learning_rate = 0.02F},
                      {.takes = VariableRule::of_kind("dense"),
                       .rule = AdamOptions{.weight_decay = 1e-2F},
                       .learning_rate = Schedule::linear_decay({.peak = 3e-3F, .total_steps = 2 * kSteps})}};
  return optimizer;
}

// What trains the convolutions; Adam trains the head, SGD with other options what has one axis.
Optimizer with_muon() { return agreeing_groups(muon(0.02F)); }
Optimizer without_muon() { return agreeing_groups(sgd(0.02F, {.momentum = 0.8F})); }

// The mean loss of every step in f32.
std::vector<double> losses(const std::string& kind, const Optimizer& optimizer, float disturbance = 0) {
  Training training(kind, 1);  // batch norm sees a replica's rows
  Model model = compiled(training.strategy, net, optimizer);
  if (disturbance != 0) {
    Philox random({.seed = 8});
    for (const std::string& name : model.variable_names()) {
      std::vector<float> values = model.read_variable(name);
      for (float& value : values) value *= 1 + disturbance * (random.uniform() - 0.5F);
      model.write_variable(name, values);
    }
  }
  Loader loader(noise(), training.devices, {.epochs = 2});
  Trainer trainer(training.strategy, model, loader, {.seed = 5});
  std::vector<double> all;
  while (static_cast<int>(all.size()) < kSteps && trainer.step()) {
    all.push_back(mean_loss(trainer.finish()));
    trainer.reset_metrics();
  }
  return all;
}

double greatest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double greatest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    greatest = std::max(greatest, std::abs(a[i] - b[i]));
  return greatest;
}

// Of losses between 1 and 2. Nothing in this net has a kink, so that differences do not grow: a GPU's kernels on
// the host are 2e-7 apart, and initial variables that are wrong by 1e-5 of themselves 3e-6. A GPU, whose products
// are summed in other orders too, has four times as much.
double tolerance() { return 5e-6 * slack(); }

void expect_agreement(const Optimizer& optimizer, double within) {
  const std::vector<double> expected = losses("cpu", optimizer);
  ASSERT_EQ(expected.size(), kSteps);
  EXPECT_GT(*std::ranges::min_element(expected), 0.5) << "too small to differ";
  EXPECT_EQ(losses("discrete", optimizer), expected) << "the CPU's kernels, other memory";
  EXPECT_LE(greatest_difference(losses("twin", optimizer), expected), tolerance());
  const std::string tested = test_kind();
  if (tested != "discrete" && tested != "twin") {
    EXPECT_LE(greatest_difference(losses(tested, optimizer), expected), within) << tested;
  }
}

TEST(Agreement, TheLossOfEveryStepIsThatOfACpuReplica) { expect_agreement(without_muon(), tolerance()); }

// A GPU's Muon multiplies in bf16, which makes each update wrong by about a percent.
TEST(Agreement, WithMuonItIsToTheAccuracyOfItsProducts) {
  expect_agreement(with_muon(), on_gpu() ? 0.02 : tolerance());
}

TEST(Agreement, WouldShowVariablesThatAreWrongByAThousandth) {
  EXPECT_GT(greatest_difference(losses("cpu", without_muon(), 1e-3F), losses("cpu", without_muon())), tolerance());
}

// Batch normalisation with the statistics of all replicas trains as one replica does on the whole batch.

// An activation behind one, pooling before the other: neither may be lost to what other norms fuse.
Node synchronised_net(Graph& g, bool synchronised) {
  const BatchNormLayerOptions options{.momentum = 0.5F, .synchronised = synchronised};
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.bias = false});
  x = g.conv(g.gelu(g.batch_norm(x, options)), 4, {.bias = false});
  x = g.relu(g.batch_norm(g.max_pool(x, 2), options));
  return g.dense(g.global_average_pool(x), 4);
}

// The last batch is partial: with four replicas some have no examples.
std::vector<std::vector<float>> trained_norms(int replicas, bool synchronised, int accumulate = 1,
                                              Precision precision = Precision::kF32) {
  Training training(replicas);
  Model model = training.strategy.build([=](Graph& g) { return synchronised_net(g, synchronised); }, {.seed = 3});
  model.compile({.optimizer = sgd(0.05F, {.momentum = 0.9F}), .precision = precision});
  model.fit(blobs(18, {6, 6, 2}).batch({.global_batch = 8}),
            {.epochs = 3, .verbose = 0, .step = {.accumulate = accumulate}});
  model.check_mirrored();
  return variables_of(model);
}

double norm_distance(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  double largest = 0;
  for (std::size_t v = 0; v < a.size(); ++v) {
    for (std::size_t i = 0; i < a[v].size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a[v][i]) - static_cast<double>(b[v][i])));
    }
  }
  return largest;
}

TEST(SynchronisedNorm, TrainsAsOneReplicaOnTheWholeBatch) {
  const auto one = trained_norms(1, true);
  EXPECT_EQ(one, trained_norms(1, false)) << "alone it is the other";
  for (const int replicas : {2, 4}) {
    EXPECT_LT(norm_distance(one, trained_norms(replicas, true)), 2e-5 * slack()) << replicas;
    EXPECT_GT(norm_distance(one, trained_norms(replicas, false)), 1e-3) << "statistics of their own differ";
  }
}

TEST(SynchronisedNorm, AccumulatesAsOneReplica) {
  EXPECT_LT(norm_distance(trained_norms(1, true, 2), trained_norms(2, true, 2)), 2e-5 * slack());
}

TEST(SynchronisedNorm, GivesTheSameBitsAgain) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    EXPECT_EQ(trained_norms(2, true, 1, precision), trained_norms(2, true, 1, precision));
  }
}

}  // namespace
}  // namespace headrace::test
