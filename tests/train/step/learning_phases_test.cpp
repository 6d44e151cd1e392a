// A variable whose rate has ended costs nothing any more; what the others become stays the same, bit for bit.
#include "headrace/train/step/update_plan.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "headrace/tests/support/test_devices.h"
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

// A rate that is 0 as far as any weight can tell, but not so that it counts as ended.
constexpr float kNextToNothing = 1e-45F;
constexpr std::uint64_t kEnd = 3;

// In the shape of cifar10_speed_net().
Node whitened(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 4,
                  {.kernel = 2, .padding = ConvPadding::kValid, .trained_weights = false, .name = "whiten"});
  x = g.conv(g.gelu(x), 6, {.bias = false});
  x = g.gelu(g.batch_norm(x, {.momentum = 0.6F, .scale = false}));
  return g.dense(g.flatten(x), 4, {.bias = false});
}

Optimizer ending(const UpdateRule& rule, float floor = 0) {
  Optimizer optimizer = muon(0.1F);
  optimizer.groups = {
      {.takes = VariableRule::named("whiten/bias"),
       .rule = rule,
       .learning_rate = Schedule::linear_decay({.peak = 0.05F, .floor = floor, .total_steps = kEnd})},
      {.takes = !VariableRule::of_kind("conv"),
       .rule = SgdOptions{.momentum = 0.9F, .nesterov = true},
       .learning_rate = 0.05F}};
  return optimizer;
}

const SgdOptions kSgd{.momentum = 0.85F, .weight_decay = 1e-2F, .nesterov = true};

std::vector<LearningPhase> phases_of(const Net& net, const Optimizer& optimizer) {
  Graph graph;
  graph.finish(net(graph));
  const VariableLayout layout(graph);
  return learning_phases(Program(graph, layout, {}), layout, graph.size(), UpdatePlan(graph, layout, optimizer));
}

TEST(LearningPhases, BeginWhereRatesEnd) {
  const auto phases = phases_of(whitened, ending(kSgd));
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].begin, 0U);
  EXPECT_TRUE(phases[0].zeroed.empty());
  EXPECT_EQ(phases[1].begin, kEnd);
  ASSERT_EQ(phases[1].zeroed.size(), 1U);
  EXPECT_EQ(phases[1].zeroed[0].end - phases[1].zeroed[0].begin, 4) << "whiten/bias";
  // Input, whiten and its gelu; the convolution behind them still learns.
  EXPECT_EQ(phases[0].needed[1], true);
  for (const std::size_t layer : {0U, 1U, 2U}) EXPECT_FALSE(phases[1].needed[layer]) << layer;
  for (const std::size_t layer : {3U, 4U, 5U}) EXPECT_TRUE(phases[1].needed[layer]) << layer;
}

TEST(LearningPhases, AreOneWhereNothingCanBeLeftOut) {
  EXPECT_EQ(phases_of(whitened, ending(kSgd, kNextToNothing)).size(), 1U);
  // The bias of a layer that has weights, and a layer behind one that learns.
  Optimizer optimizer = adam(1e-2F);
  optimizer.groups = {{.takes = VariableRule::of_rank(1) || VariableRule::of_kind("dense"),
                       .rule = kSgd,
                       .learning_rate = Schedule::cosine_decay({.peak = 0.1F, .total_steps = kEnd})}};
  EXPECT_EQ(phases_of(test::small_cnn, optimizer).size(), 1U);
  // Nothing learns any more.
  EXPECT_EQ(phases_of(test::small_cnn, sgd(Schedule::linear_decay({.total_steps = kEnd}))).size(), 1U);
  EXPECT_EQ(phases_of(test::small_cnn, sgd(0.0F)).size(), 1U);
}

TEST(LearningPhases, EachEndBeginsOneWhereTheNormIsLimited) {
  // A dense layer's bias ends, which spares no work; then the weights do, too.
  Optimizer optimizer = adam(1e-2F);
  optimizer.groups = {{.takes = VariableRule::named("dense/bias"),
                       .rule = kSgd,
                       .learning_rate = Schedule::linear_decay({.peak = 0.1F, .total_steps = kEnd})}};
  EXPECT_EQ(phases_of(test::small_mlp, optimizer).size(), 1U);
  optimizer.clip.max_norm = 1;
  const auto phases = phases_of(test::small_mlp, optimizer);
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[1].begin, kEnd);
  EXPECT_EQ(phases[0].needed, phases[1].needed);
  EXPECT_TRUE(phases[1].zeroed.empty());
  const auto elements = [](const LearningPhase& phase) {
    std::int64_t count = 0;
    for (const auto& [begin, end] : phase.learning) count += end - begin;
    return count;
  };
  EXPECT_EQ(phases[0].learning.size(), 1U);
  EXPECT_EQ(elements(phases[0]) - elements(phases[1]), 16);  // dense/bias
}

TEST(LearningPhases, ARateThatIsAlwaysZeroHasEndedAtTheStart) {
  Optimizer optimizer = ending(kSgd);
  optimizer.groups[0].learning_rate = 0.0F;
  const auto phases = phases_of(whitened, optimizer);
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].begin, 0U);
  EXPECT_FALSE(phases[0].needed[1]);
}

std::vector<std::vector<float>> weights_after(DeviceGroup devices, const Optimizer& optimizer, int accumulate) {
  Strategy strategy(devices, {.announce = false});
  Model model = test::compiled(strategy, whitened, optimizer);
  const Dataset data = test::blobs(72, {6, 6, 2}).batch({.global_batch = 8});
  // The second fit begins behind the end.
  for (const std::uint64_t until : {5, 9}) {
    model.fit(data, {.epochs = 2,
                     .verbose = 0,
                     .step = {.accumulate = accumulate, .mirror_check_every = 1},
                     .stop_after_steps = until});
  }
  EXPECT_EQ(model.global_step(), 9U);
  return test::variables_of(model);
}

class LearningPhasesTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, LearningPhasesTest, testing::Values(1, 2, 4));

TEST_P(LearningPhasesTest, LeaveTheSameWeights) {
  const auto devices = [] { return test::test_devices(GetParam(), DeviceNeed::kKernels); };
  for (const UpdateRule& rule : {UpdateRule(kSgd), UpdateRule(AdamOptions{.weight_decay = 1e-2F})}) {
    for (const int accumulate : {1, 2}) {
      EXPECT_EQ(weights_after(devices(), ending(rule), accumulate),
                weights_after(devices(), ending(rule, kNextToNothing), accumulate));
    }
  }
  EXPECT_EQ(weights_after(test::twin_devices(GetParam()), ending(kSgd), 1),
            weights_after(test::twin_devices(GetParam()), ending(kSgd, kNextToNothing), 1));
}

// Counts, as they run, gradients of a bias and gradients that go on to a layer before.
class PhaseCountingKernels final : public test::TwinKernels {
 public:
  using TwinKernels::TwinKernels;

  void run(Stream& stream, const kernel::ConvBackwardWeights& of) override {
    TwinKernels::run(stream, of);
    if (of.dbias.defined()) stream.call([this] { ++biases; });
  }
  void run(Stream& stream, const kernel::ConvBackwardData& of) override {
    TwinKernels::run(stream, of);
    stream.call([this] { ++data; });
  }

  int biases = 0, data = 0;
};

class CountingTwin final : public test::TwinDevice {
 public:
  explicit CountingTwin(std::unique_ptr<Device> cpu) : TwinDevice(std::move(cpu)), counting_(this->inner()) {}

  PhaseCountingKernels* kernels() noexcept override { return &counting_; }

 private:
  PhaseCountingKernels counting_;
};

TEST(LearningPhases, DoNotComputeWhatNobodyNeeds) {
  DeviceGroup devices = test::devices_of<CountingTwin>(1);
  Strategy strategy(devices, {.announce = false});
  Model model = test::compiled(strategy, whitened, ending(kSgd));
  Loader loader(test::blobs(72, {6, 6, 2}).batch({.global_batch = 8}), devices);
  Trainer trainer(strategy, model, loader);
  while (trainer.step()) {
  }
  trainer.finish();
  EXPECT_EQ(model.global_step(), 9U);
  const auto& counted = *dynamic_cast<CountingTwin&>(devices[0]).kernels();
  EXPECT_EQ(counted.biases, static_cast<int>(kEnd));
  EXPECT_EQ(counted.data, static_cast<int>(kEnd));
}

}  // namespace
}  // namespace headrace
