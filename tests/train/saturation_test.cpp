// What the steps' times say of runs whose bottleneck is known. On the CPU, beside a bus that the test makes slow:
// a GPU's steps would be shorter than the times that are told apart here.
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

using std::chrono::milliseconds;

constexpr int kSaturatedBatch = 32, kSaturatedSteps = 30;

DeviceGroup slow_bus_device() { return devices_of<SlowBusDevice>(1); }

// A net whose step on a batch takes some milliseconds.
Node wide_mlp(Graph& g) {
  Node x = g.dense(g.input("image", {256}), 1024, {.activation = Activation::kRelu});
  x = g.dense(x, 1024, {.activation = Activation::kRelu});
  return g.dense(g.dense(x, 1024, {.activation = Activation::kRelu}), 4);
}

StepTimes times_of_epoch(Trainer& trainer) {
  trainer.reset_metrics();
  while (trainer.step()) {
  }
  trainer.finish();
  return trainer.times();
}

double sum(const StepTimes& times) {
  return times.input_stall_fraction() + times.exposed_copy_fraction() + times.device_idle_fraction();
}

TEST(Saturation, ASlowInputIsAStallAndNothingElse) {
  undisturbed([](int slower) {
    Training training("cpu", 2);
    Model model = compiled(training.strategy, small_mlp);
    const UserMap slow{.name = "slow",
                       .output = {.dtype = DType::kF32, .shape = {8}},
                       .function = [slower](auto in, const Shape&, auto out, Philox&) {
                         std::this_thread::sleep_for(std::chrono::microseconds(500 * slower));
                         std::ranges::copy(in, out.begin());
                       }};
    const Dataset data =
        blobs(kSaturatedBatch * kSaturatedSteps).map(user_map(slow)).batch({.global_batch = kSaturatedBatch});
    Loader loader(data, training.devices, {.threads = 1});
    Trainer trainer(training.strategy, model, loader);
    const StepTimes times = times_of_epoch(trainer);
    EXPECT_EQ(times.batches, static_cast<std::uint64_t>(kSaturatedSteps));
    EXPECT_GT(times.input_stall_fraction(), 0.7);
    EXPECT_LE(times.input_stall_fraction(), 1.0);
    EXPECT_EQ(times.exposed_copy_ns, 0) << "nothing is copied";
    EXPECT_LT(times.device_idle_fraction(), 0.25);
    EXPECT_GT(times.elapsed_ns, 2 * kSaturatedSteps * kSaturatedBatch * 400'000LL)
        << "of two replicas, a batch being 16 ms late";
  });
}

TEST(Saturation, ASlowBusIsAnExposedCopy) {
  undisturbed([](int slower) {
    DeviceGroup devices = slow_bus_device();
    Strategy strategy(devices, {.announce = false});
    Model model = compiled(strategy, small_mlp);
    dynamic_cast<SlowBusDevice&>(devices[0]).slow_down(milliseconds(8 * slower));
    Loader loader(blobs(kSaturatedBatch * kSaturatedSteps).batch({.global_batch = kSaturatedBatch}), devices,
                  {.threads = 1, .prefetch = 2});
    Trainer trainer(strategy, model, loader);
    const StepTimes times = times_of_epoch(trainer);
    EXPECT_GT(times.exposed_copy_fraction(), 0.7);
    EXPECT_LT(times.device_idle_fraction(), 0.25);
    EXPECT_LE(sum(times), 1.0 + 1e-9);
  });
}

TEST(Saturation, ADeviceThatIsAlwaysBusyShowsNoneOfThem) {
  undisturbed([](int slower) {
    DeviceGroup devices = slow_bus_device();
    Strategy strategy(devices, {.announce = false});
    Model model = compiled(strategy, wide_mlp);
    Loader loader(blobs(4 * 256, Shape{256}).batch({.global_batch = 256}), devices,
                  {.epochs = 10U * static_cast<unsigned>(slower), .threads = 1, .prefetch = 3, .headspace = 4});
    Trainer trainer(strategy, model, loader);
    for (int i = 0; i < 5; ++i) trainer.step();  // the ring fills
    trainer.finish();
    const StepTimes times = times_of_epoch(trainer);
    EXPECT_EQ(times.batches, 40U * static_cast<unsigned>(slower) - 5);
    EXPECT_GT(times.elapsed_ns, 0);
    EXPECT_LT(times.input_stall_fraction(), 0.25);
    EXPECT_LT(times.exposed_copy_fraction(), 0.25);
    EXPECT_LT(times.device_idle_fraction(), 0.25);
    EXPECT_GT(times.host_ns, 0U);
    EXPECT_LT(static_cast<double>(times.host_ns), 0.5 * static_cast<double>(times.elapsed_ns));
  });
}

// A host that is late with its steps is neither.
TEST(Saturation, ALateHostIsIdleTime) {
  undisturbed([](int slower) {
    Training training("cpu", 1);
    Model model = compiled(training.strategy, small_mlp);
    Loader loader(blobs(kSaturatedBatch * kSaturatedSteps).batch({.global_batch = kSaturatedBatch}),
                  training.devices, {.threads = 1});
    Trainer trainer(training.strategy, model, loader);
    trainer.reset_metrics();
    while (auto batches = trainer.take()) {
      trainer.gradients(std::move(*batches));
      trainer.all_reduce();
      trainer.apply_gradients();
      std::this_thread::sleep_for(milliseconds(5 * slower));
    }
    trainer.finish();
    const StepTimes times = trainer.times();
    EXPECT_EQ(times.batches, static_cast<std::uint64_t>(kSaturatedSteps));
    EXPECT_GT(times.device_idle_fraction(), 0.7);
    EXPECT_LT(times.input_stall_fraction(), 0.25);
  });
}

// The weights do not depend on who converted the images, nor on whose clock was looked at.
TEST(Saturation, TrainingIsTheSameThroughTheBus) {
  const auto weights = [](DeviceGroup& devices, ConvertAt at) {
    Strategy strategy(devices, {.announce = false});
    Model model = compiled(strategy, small_mlp);
    std::vector<std::uint8_t> pixels;
    std::vector<std::int64_t> labels;
    Philox random({.seed = 3});
    for (int i = 0; i < 100; ++i) {
      labels.push_back(i % 4);
      for (int k = 0; k < 2 * 2 * 2; ++k) pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
    const Dataset data =
        Dataset::from(in_memory("pixels", labels.size(),
                                {array_of("image", {2, 2, 2}, pixels), array_of("label", Shape{}, labels)}))
            .map(flip() | normalize({0.5F}, {0.25F}) | flatten())
            .batch({.global_batch = 16});
    model.fit(data, {.epochs = 2, .verbose = 0, .input = {.convert = at}});
    return model.weights_sha256();
  };
  DeviceGroup cpu = open_devices("cpu:1"), gpu = slow_bus_device();
  const std::string expected = weights(cpu, ConvertAt::kAuto);
  EXPECT_EQ(weights(gpu, ConvertAt::kDevice), expected);
  EXPECT_EQ(weights(gpu, ConvertAt::kHost), expected);
  DeviceGroup tested = own_memory_devices(2, "twin", DeviceNeed::kKernels);
  EXPECT_EQ(weights(tested, ConvertAt::kDevice), weights(tested, ConvertAt::kHost));
}

}  // namespace
}  // namespace headrace::test
