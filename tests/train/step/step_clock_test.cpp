#include "headrace/train/step/step_clock.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

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
