// What a custom training loop may do and may not, what it costs, and what it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

using test::loop_data;
using test::Training;
using testing::HasSubstr;

TEST(CustomLoop, AnOrderThatWouldLoseGradientsIsRefused) {
  Training training(2);
  Model model = test::compiled(training.strategy, test::small_cnn);
  Loader loader(loop_data(8), training.devices, {.epochs = 2});
  const auto refused = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  Trainer trainer(training.strategy, model, loader);
  EXPECT_THAT(refused([&] { trainer.backward(); }), HasSubstr("needs a forward()"));
  EXPECT_THAT(refused([&] { trainer.all_reduce(); }), HasSubstr("without gradients"));
  EXPECT_THAT(refused([&] { trainer.apply_gradients(); }), HasSubstr("before all_reduce()"));
  trainer.forward(*trainer.take());
  EXPECT_THAT(refused([&] { trainer.all_reduce(); }), HasSubstr("without its backward()"));
  trainer.forward(*trainer.take());  // the one before was only looked at
  trainer.backward();
  EXPECT_THAT(refused([&] { trainer.gradients(*trainer.take()); }), HasSubstr("StepOptions::accumulate"));
  EXPECT_THAT(refused([&] { trainer.step(); }), HasSubstr("not used yet"));
  EXPECT_THAT(refused([&] { trainer.apply_gradients(); }), HasSubstr("before all_reduce()"));
  trainer.discard_gradients();
  EXPECT_THAT(refused([&] { trainer.all_reduce(); }), HasSubstr("without gradients"));
  trainer.gradients(*trainer.take());
  trainer.all_reduce();
  EXPECT_THAT(refused([&] { trainer.gradients(*trainer.take()); }), HasSubstr("call apply_gradients()"));
  trainer.apply_gradients();
  EXPECT_TRUE(trainer.step());
  trainer.finish();
  EXPECT_EQ(model.global_step(), 2U);
  EXPECT_THAT(refused([&] { trainer.forward(*trainer.take()).labels(0, "colour"); }), HasSubstr("they use label"));
}

TEST(CustomLoop, RefusesALoaderOnOtherDevices) {
  Training mine(2), other(2);
  Model model = test::compiled(mine.strategy, test::small_cnn);
  Loader loader(loop_data(), other.devices);
  try {
    Trainer trainer(mine.strategy, model, loader);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("other devices"));
  }
  EXPECT_THROW(Evaluator(model, loader), ConfigError);
}

TEST(CustomLoop, GoesOnFromAnyStep) {
  const Schedule falling = Schedule::linear_decay({.peak = 0.2F, .total_steps = 8});
  const Dataset data = test::blobs(64, {6, 6, 2}).shuffle().batch({.global_batch = 8});
  Training whole(2);
  Model expected = test::compiled(whole.strategy, test::small_cnn, sgd(falling));
  Loader all(data, whole.devices);
  Trainer trainer(whole.strategy, expected, all);
  std::vector<std::vector<float>> halfway;
  LoaderState position;
  while (trainer.step()) {
    if (expected.global_step() != 5) continue;
    trainer.finish();
    halfway = test::variables_of(expected);
    position = all.state();
  }
  trainer.finish();

  Training later(2);
  Model model = test::compiled(later.strategy, test::small_cnn, sgd(falling));
  for (std::size_t v = 0; v < halfway.size(); ++v) model.write_variable(model.variable_names()[v], halfway[v]);
  Loader rest(data, later.devices, {.start = position});
  Trainer second(later.strategy, model, rest, {.first_step = 5});
  while (second.step()) {
  }
  second.finish();
  EXPECT_EQ(model.global_step(), 8U);
  EXPECT_EQ(model.weights_sha256(), expected.weights_sha256());
}

TEST(CustomLoop, TimesTellWhichReplicaTheOthersWaitFor) {
  test::undisturbed([](int slower) {
    Training training("cpu", 3);  // where waits are known
    Model model = test::compiled(training.strategy, test::small_mlp);
    Loader loader(test::blobs(40).batch({.global_batch = 8}), training.devices);
    Trainer trainer(training.strategy, model, loader);
    const std::chrono::milliseconds pause(10 * slower);
    trainer.reset_metrics();
    while (std::optional<GlobalBatch> batches = trainer.take()) {
      trainer.gradients(std::move(*batches));
      training.strategy.on(1, [&](const ReplicaContext& replica) {
        replica.stream.call([pause] { std::this_thread::sleep_for(pause); });
      });
      trainer.all_reduce();
      trainer.apply_gradients();
    }
    trainer.finish();
    const std::vector<StepTimes> times = trainer.replica_times();
    const std::int64_t paused = 5 * std::chrono::nanoseconds(pause).count();
    for (const std::size_t waiting : {0U, 2U}) {
      EXPECT_GT(times[waiting].sync_wait_ns, paused / 2);
      EXPECT_LE(times[waiting].sync_wait_ns, times[waiting].elapsed_ns);
    }
    EXPECT_LT(times[1].sync_wait_ns, paused / 4);
    EXPECT_EQ(trainer.times().sync_wait_ns, times[0].sync_wait_ns + times[1].sync_wait_ns + times[2].sync_wait_ns);
    trainer.reset_metrics();
    EXPECT_EQ(trainer.times().sync_wait_ns, 0);
  });
}

// Split, assign, start, train, release.
TEST(CustomLoop, GivesBackAllMemory) {
  DeviceGroup devices = test::test_devices(4, DeviceNeed::kKernels);
  Buffer others = devices[0].allocate(1 << 16), pinned = devices[0].allocate_pinned(1 << 10);
  DeviceGroup rest = devices.split(2);
  const auto use = [&] {
    std::vector<std::uint64_t> bytes;
    for (const DeviceGroup* group : {&devices, &rest}) {
      for (int i = 0; i < 2; ++i) {
        bytes.push_back((*group)[i].memory_use().device_bytes);
        bytes.push_back((*group)[i].memory_use().pinned_bytes);
      }
    }
    return bytes;
  };
  const std::vector<std::uint64_t> before = use();
  EXPECT_GT(before[0] + before[1], 0U);
  for (DeviceGroup* group : {&devices, &rest}) {
    Strategy strategy(*group, {.announce = false});
    Model model = test::compiled(strategy, test::norm_cnn);
    Loader loader(loop_data(), *group, {.epochs = 2});
    Trainer trainer(strategy, model, loader, {.step = {.accumulate = 2}});
    const ForwardPass& pass = trainer.forward(*trainer.take());
    pass.example_losses(1);
    trainer.backward();
    trainer.all_reduce();
    trainer.apply_gradients();
    while (trainer.step()) {
    }
    Loader held_out(loop_data(), *group);
    Evaluator evaluator(model, held_out);
    evaluator.step();
    EXPECT_NE(use(), before);
  }
  EXPECT_EQ(use(), before);
}

}  // namespace
}  // namespace headrace
