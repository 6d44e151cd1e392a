// Devices that are lost under the trainer: an error that names the device, no hang, whatever call fails.
#include "headrace/devices/base/clock.h"
#include "headrace/tests/support/failing_device.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

constexpr int kReplicas = 2;

DeviceGroup two_devices(int victim, const Lives& lives) {
  const Backend& cpu = *backends().front();
  std::vector<std::unique_ptr<Device>> devices;
  for (int r = 0; r < kReplicas; ++r) {
    devices.push_back(std::make_unique<FailingDevice>(cpu.open(0, "gpu:" + std::to_string(r), kReplicas),
                                                      r == victim ? lives : Lives{}));
  }
  return DeviceGroup(std::move(devices));
}

// A way to train: what it does on a device differs.
struct TrainingUse {
  const char* name;
  void (*train)(Trainer& trainer);
  int accumulate = 1;
};

void in_steps(Trainer& trainer) {
  trainer.warm_up();
  for (int i = 0; i < 6; ++i) trainer.step();
  trainer.finish();
}

void in_parts(Trainer& trainer) {
  for (int i = 0; i < 4; ++i) {
    trainer.gradients(*trainer.take());
    trainer.all_reduce();
    trainer.apply_gradients();
  }
  trainer.finish();
}

const std::vector<TrainingUse>& training_uses() {
  static const std::vector<TrainingUse> all{
      {"steps", in_steps}, {"accumulating", in_steps, 2}, {"in parts", in_parts}};
  return all;
}

// Everything from the strategy to its end. False where a device was lost.
bool training_survives(const TrainingUse& use, int victim, const DeviceCall& call, int lives) {
  SCOPED_TRACE(std::string(use.name) + ", replica " + std::to_string(victim) + ", " + call.name + " fails after " +
               std::to_string(lives));
  Lives left;
  left.*call.lives = lives;
  DeviceGroup devices = two_devices(victim, left);
  const auto& device = dynamic_cast<const FailingDevice&>(devices[victim]);
  const Dataset data = blobs(64, {6, 6, 2}).batch({.global_batch = 8});
  Stopwatch teardown;
  {
    std::unique_ptr<Strategy> strategy;
    try {
      strategy = std::make_unique<Strategy>(devices, StrategyOptions{.announce = false});
      Model model = compiled(*strategy, norm_cnn);
      Loader loader(data, devices, {.epochs = 2, .threads = 1, .stall_timeout_seconds = 30});
      Trainer trainer(*strategy, model, loader, {.step = {.accumulate = use.accumulate}});
      use.train(trainer);
      EXPECT_FALSE(device.lost()) << "an error was lost";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.device(), "gpu:" + std::to_string(victim)) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("fell off the bus"));
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not the device's error: " << error.what();
    }
    teardown.restart();
  }
  EXPECT_LE(teardown.seconds(), 1.0);
  for (int r = 0; r < kReplicas; ++r) {
    EXPECT_EQ(devices[r].memory_use().device_bytes, 0U);
    EXPECT_EQ(devices[r].memory_use().pinned_bytes, 0U);
  }
  return !device.lost();
}

class TrainingDeviceFaults : public testing::TestWithParam<int> {};

TEST_P(TrainingDeviceFaults, EachCallOfTheTrainerMayFail) {
  const TrainingUse& use = training_uses()[static_cast<std::size_t>(GetParam())];
  constexpr int kEnough = 200;
  for (int victim = 0; victim < kReplicas; ++victim) {
    int failed = 0;
    for (const DeviceCall& call : kDeviceCalls) {
      // The first calls, then fewer and fewer: a long run makes the same ones again and again.
      int lives = 0;
      while (lives < kEnough && !training_survives(use, victim, call, lives) && !HasFailure()) {
        lives += 1 + lives / 2;
        ++failed;
      }
    }
    EXPECT_GE(failed, 50) << "the calls were not made";
  }
}

INSTANTIATE_TEST_SUITE_P(Uses, TrainingDeviceFaults, testing::Range(0, static_cast<int>(training_uses().size())));

}  // namespace
}  // namespace headrace::test
