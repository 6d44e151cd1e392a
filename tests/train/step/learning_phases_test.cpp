// Phases of a step, and its clock.
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/step/step_clock.h"
#include "headrace/train/step/update_plan.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// A variable whose rate has ended costs nothing any more; what the others become stays the same, bit for bit.

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
  EXPECT_EQ(phases_of(small_cnn, optimizer).size(), 1U);
  // Nothing learns any more.
  EXPECT_EQ(phases_of(small_cnn, sgd(Schedule::linear_decay({.total_steps = kEnd}))).size(), 1U);
  EXPECT_EQ(phases_of(small_cnn, sgd(0.0F)).size(), 1U);
}

TEST(LearningPhases, EachEndBeginsOneWhereTheNormIsLimited) {
  // A dense layer's bias ends, which spares no work; then the weights do, too.
  Optimizer optimizer = adam(1e-2F);
  optimizer.groups = {{.takes = VariableRule::named("dense/bias"),
                       .rule = kSgd,
                       .learning_rate = Schedule::linear_decay({.peak = 0.1F, .total_steps = kEnd})}};
  EXPECT_EQ(phases_of(small_mlp, optimizer).size(), 1U);
  optimizer.clip.max_norm = 1;
  const auto phases = phases_of(small_mlp, optimizer);
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
  Model model = compiled(strategy, whitened, optimizer);
  const Dataset data = blobs(72, {6, 6, 2}).batch({.global_batch = 8});
  // The second fit begins behind the end.
  for (const std::uint64_t until : {5, 9}) {
    model.fit(data, {.epochs = 2,
                     .verbose = 0,
                     .step = {.accumulate = accumulate, .mirror_check_every = 1},
                     .stop_after_steps = until});
  }
  EXPECT_EQ(model.global_step(), 9U);
  return variables_of(model);
}

class LearningPhasesTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, LearningPhasesTest, testing::Values(1, 2, 4));

TEST_P(LearningPhasesTest, LeaveTheSameWeights) {
  const auto devices = [] { return test_devices(GetParam(), DeviceNeed::kKernels); };
  for (const UpdateRule& rule : {UpdateRule(kSgd), UpdateRule(AdamOptions{.weight_decay = 1e-2F})}) {
    for (const int accumulate : {1, 2}) {
      EXPECT_EQ(weights_after(devices(), ending(rule), accumulate),
                weights_after(devices(), ending(rule, kNextToNothing), accumulate));
    }
  }
  EXPECT_EQ(weights_after(twin_devices(GetParam()), ending(kSgd), 1),
            weights_after(twin_devices(GetParam()), ending(kSgd, kNextToNothing), 1));
}

// Counts, as they run, gradients of a bias and gradients that go on to a layer before.
class PhaseCountingKernels final : public TwinKernels {
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

class CountingTwin final : public TwinDevice {
 public:
  explicit CountingTwin(std::unique_ptr<Device> cpu) : TwinDevice(std::move(cpu)), counting_(this->inner()) {}

  PhaseCountingKernels* kernels() noexcept override { return &counting_; }

 private:
  PhaseCountingKernels counting_;
};

TEST(LearningPhases, DoNotComputeWhatNobodyNeeds) {
  DeviceGroup devices = devices_of<CountingTwin>(1);
  Strategy strategy(devices, {.announce = false});
  Model model = compiled(strategy, whitened, ending(kSgd));
  Loader loader(blobs(72, {6, 6, 2}).batch({.global_batch = 8}), devices);
  Trainer trainer(strategy, model, loader);
  while (trainer.step()) {
  }
  trainer.finish();
  EXPECT_EQ(model.global_step(), 9U);
  const auto& counted = *dynamic_cast<CountingTwin&>(devices[0]).kernels();
  EXPECT_EQ(counted.biases, static_cast<int>(kEnd));
  EXPECT_EQ(counted.data, static_cast<int>(kEnd));
}

// On the CPU: the events are the test's own.
// Reached at a time of the device's clock.
struct StampedEvent final : Event {
  explicit StampedEvent(std::int64_t at_ns) : at(at_ns) {}
  bool ready() const override { return true; }
  void wait() const override {}
  std::optional<std::int64_t> ns_since(const Event& earlier) const override {
    return at - dynamic_cast<const StampedEvent&>(earlier).at;
  }
  std::int64_t at;
};

StepSlot step_of(std::int64_t begin, std::int64_t arrived, std::int64_t done) {
  StepSlot step;
  step.shards.push_back({.begin = std::make_unique<StampedEvent>(begin),
                         .arrived = std::make_unique<StampedEvent>(arrived),
                         .done = std::make_unique<StampedEvent>(done),
                         .waited = true});
  return step;
}

// The device ends a batch at 1000, begins the next at 1500, has it at 1700 and is done at 2700. On the host's
// clock that gap is 101000 to 101500, and next() was waited in from `asked` to `taken`.
StepTimes times_of(std::uint64_t asked, std::uint64_t taken) {
  Training training("cpu", 1);
  StepClock clock(training.strategy, Shards(training.strategy, 0));
  StepSlot step = step_of(1500, 1700, 2700);
  step.shards[0].submitted_ns = 101'500;
  step.asked_ns = asked;
  step.taken_ns = taken;
  clock.add(step, step_of(0, 0, 1000));
  return clock.times;
}

TEST(StepClock, DividesAGapBetweenTheInputAndTheHost) {
  const StepTimes late_input = times_of(100'000, 101'400);
  EXPECT_EQ(late_input.batches, 1U);
  EXPECT_EQ(late_input.elapsed_ns, 1700);
  EXPECT_EQ(late_input.input_stall_ns, 400);
  EXPECT_EQ(late_input.idle_ns, 100);
  EXPECT_EQ(late_input.exposed_copy_ns, 200);
  EXPECT_DOUBLE_EQ(late_input.input_stall_fraction(), 400.0 / 1700);
  EXPECT_DOUBLE_EQ(late_input.exposed_copy_fraction(), 200.0 / 1700);
  EXPECT_DOUBLE_EQ(late_input.device_idle_fraction(), 100.0 / 1700);

  const StepTimes late_host = times_of(101'200, 101'400);
  EXPECT_EQ(late_host.input_stall_ns, 200);
  EXPECT_EQ(late_host.idle_ns, 300);
}

TEST(StepClock, WaitingWhileTheDeviceWorksIsNoStall) {
  const StepTimes times = times_of(100'000, 100'900);
  EXPECT_EQ(times.input_stall_ns, 0);
  EXPECT_EQ(times.idle_ns, 500);
}

TEST(StepClock, WhatHadArrivedWasNotWaitedFor) {
  Training training("cpu", 1);
  StepClock clock(training.strategy, Shards(training.strategy, 0));
  StepSlot step = step_of(1000, 0, 1500);
  step.shards[0].waited = false;
  clock.add(step, step_of(0, 0, 1000));
  clock.add(step, step_of(0, 0, 1000));
  EXPECT_EQ(clock.times.batches, 2U);
  EXPECT_EQ(clock.times.elapsed_ns, 1000);
  EXPECT_EQ(clock.times.exposed_copy_ns, 0);
  EXPECT_EQ(clock.times.idle_ns, 0);
}

// What was submitted while the device was at work begins where that ends: its `begin` was not recorded.
TEST(StepClock, ABusyDeviceHasNoGap) {
  Training training("cpu", 1);
  StepClock clock(training.strategy, Shards(training.strategy, 0));
  StepSlot step = step_of(-1, 1200, 2700);
  step.shards[0].idle = false;
  clock.add(step, step_of(0, 0, 1000));
  EXPECT_EQ(clock.times.elapsed_ns, 1700);
  EXPECT_EQ(clock.times.idle_ns, 0);
  EXPECT_EQ(clock.times.input_stall_ns, 0);
  EXPECT_EQ(clock.times.exposed_copy_ns, 200) << "from the end of the batch before";
}

// The spans of the same batch, after restart() tied its start to the host's clock.
TEST(StepClock, DrawsWhatTheDeviceDid) {
  Training training("cpu", 1);
  const auto trace = std::make_shared<Trace>(16);
  StepClock clock(training.strategy, Shards(training.strategy, 0), trace);
  clock.restart();
  StepSlot step = step_of(1500, 1700, 2700);
  step.shards[0].submitted_ns = 101'500;
  step.shards[0].examples = 7;
  step.position.sequence = 4;
  step.asked_ns = 101'100;
  step.taken_ns = 101'400;
  clock.add(step, step_of(0, 0, 1000));
  clock.add(step_of(2700, 2700, 2900), step_of(0, 0, 2700));
  const auto json = trace->to_json();
  EXPECT_THAT(json, HasSubstr("\"name\":\"cpu:0 steps\""));
  const std::string batch = R"("args":{"batch":4,"items":7}})";
  EXPECT_THAT(json, HasSubstr(R"("name":"input wait","pid":1,"tid":1,"ts":0.000,"dur":0.300,)" + batch));
  EXPECT_THAT(json, HasSubstr(R"("name":"copy","pid":1,"tid":1,"ts":0.400,"dur":0.200,)" + batch));
  EXPECT_THAT(json, HasSubstr(R"("name":"step","pid":1,"tid":1,"ts":0.600,"dur":1.000,)" + batch));
  EXPECT_THAT(json, HasSubstr(R"("name":"step","pid":1,"tid":1,"ts":1.600,"dur":0.200,)"));
}

TEST(StepClock, NothingTakesNoTime) {
  const StepTimes none;
  EXPECT_EQ(none.input_stall_fraction(), 0);
  EXPECT_EQ(none.device_idle_fraction(), 0);
}

}  // namespace
}  // namespace headrace::test
