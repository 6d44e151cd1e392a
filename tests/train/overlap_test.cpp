// Replicas with memory of their own sum gradients beside the backward pass; that changes when, never what.
#include "headrace/tests/support/gate.h"
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// The test devices, or a GPU's kernels on the host. Tests that hook into kernels are of the latter alone.
DeviceGroup own_memory(int replicas) { return own_memory_devices(replicas, "twin", DeviceNeed::kKernels); }

// A GPU's kernels on the host, with more submitted before the loss and behind the gradient of weights.
class HookedKernels final : public TwinKernels {
 public:
  using TwinKernels::TwinKernels;

  std::function<void(Stream&)> before_loss;
  std::function<void(Stream&, const TensorView& weights)> after_gradient;

  void run(Stream& stream, const kernel::SoftmaxCrossEntropy& of) override {
    if (before_loss) before_loss(stream);
    TwinKernels::run(stream, of);
  }
  void run(Stream& stream, const kernel::DenseBackwardWeights& of) override {
    TwinKernels::run(stream, of);
    if (after_gradient) after_gradient(stream, of.dweights);
  }
};

class HookedTwin final : public TwinDevice {
 public:
  explicit HookedTwin(std::unique_ptr<Device> cpu) : TwinDevice(std::move(cpu)), hooked_(this->inner()) {}

  HookedKernels* kernels() noexcept override { return &hooked_; }

 private:
  HookedKernels hooked_;
};

// The same replica with the host's memory: it sums on its compute stream.
class InPlaceTwin final : public TwinDevice {
 public:
  explicit InPlaceTwin(std::unique_ptr<Device> cpu) : TwinDevice(std::move(cpu)), info_(TwinDevice::info()) {
    info_.host_memory = true;
  }
  const DeviceInfo& info() const noexcept override { return info_; }

 private:
  DeviceInfo info_;
};

HookedKernels& hooks(DeviceGroup& devices, int replica) {
  return *dynamic_cast<HookedTwin&>(devices[replica]).kernels();
}

// A hang would be the failure: it shall be one line of a report.
bool eventually(const Event& event) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!event.ready() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return event.ready();
}

Dataset blob_batches() { return blobs(48).batch({.global_batch = 8}); }

// A small net on its way, with buckets of a few gradients. The step is captured here: hooks come before it.
struct TrainingRun {
  explicit TrainingRun(Strategy& strategy)
      : model(compiled(strategy, small_mlp)),
        loader(blob_batches(), strategy.devices()),
        trainer(strategy, model, loader, {.buckets = {.bucket_bytes_apart = 64}}) {}

  Model model;
  Loader loader;
  Trainer trainer;
};

// --- when ---

struct Apart {
  bool sums, weights, updates;

  bool operator==(const Apart&) const = default;
};

Apart apart(DeviceGroup devices) {
  Strategy strategy(devices, {.announce = false});
  const ReplicaStreams streams = strategy.streams(0);
  return {streams.sums_apart(), streams.weights_apart(), streams.updates_apart()};
}

TEST(Overlap, StreamsOfTheirOwnAreForReplicasWithMemoryOfTheirOwn) {
  DeviceGroup two = own_memory(2);
  const bool shared =
      !Strategy(two, {.announce = false}).collective().runs_beside();  // one GPU, in logical replicas
  EXPECT_EQ(apart(own_memory(2)), (Apart{.sums = !shared, .weights = !shared, .updates = false}));
  EXPECT_EQ(apart(own_memory(1)), (Apart{.sums = false, .weights = true, .updates = true}));
  EXPECT_EQ(apart(open_devices("cpu:2")), (Apart{.sums = false, .weights = false, .updates = false}));
  EXPECT_EQ(apart(open_devices("cpu:1")), (Apart{.sums = false, .weights = false, .updates = false}));
}

TEST(Overlap, ABucketIsSummedBeforeTheBackwardPassEnds) {
  DeviceGroup devices = devices_of<HookedTwin>(2);
  Strategy strategy(devices, {.announce = false});
  const auto summed = devices[0].create_event();
  Gate gate;
  std::atomic<bool> recorded{false};
  // The first layer's gradients come last: by then those of the second have left.
  hooks(devices, 0).after_gradient = [&](Stream& stream, const TensorView& weights) {
    if (weights.shape != Shape{16, 8}) return;
    strategy.streams(0).communication.record(*summed);
    recorded = true;
    stream.call(gate.blocker());
  };
  TrainingRun run(strategy);
  const std::vector<float> before = run.model.read_variable("dense/weights");
  run.trainer.step();
  EXPECT_TRUE(recorded);
  EXPECT_TRUE(eventually(*summed));
  gate.open();
  run.trainer.finish();
  EXPECT_NE(run.model.read_variable("dense/weights"), before);
}

TEST(Overlap, TheBackwardPassDoesNotWaitForASum) {
  DeviceGroup devices = devices_of<HookedTwin>(2);
  Strategy strategy(devices, {.announce = false});
  const auto backward_done = devices[0].create_event();
  Gate gate;
  std::atomic<bool> recorded{false};
  hooks(devices, 0).after_gradient = [&](Stream& stream, const TensorView& weights) {
    if (weights.shape != Shape{16, 8}) return;
    stream.record(*backward_done);
    recorded = true;
  };
  hooks(devices, 1).before_loss = [&](Stream& stream) { stream.call(gate.blocker()); };
  TrainingRun run(strategy);
  run.trainer.step();
  EXPECT_TRUE(recorded);
  EXPECT_TRUE(eventually(*backward_done)) << "while the other replica has nothing to sum yet";
  gate.open();
  run.trainer.finish();
  run.model.check_mirrored();
}

// --- what ---

struct Recipe {
  Net net = small_cnn;
  Optimizer optimizer = grouped();
  std::int64_t bucket_bytes = 64;
  int accumulate = 1;
};

std::vector<std::vector<float>> overlapped_weights(DeviceGroup devices, const Recipe& run) {
  Strategy strategy(devices, {.announce = false});
  Model model = compiled(strategy, run.net, run.optimizer);
  Loader loader(blobs(53, {6, 6, 2}).batch({.global_batch = 8}), devices, {.epochs = 2});
  Trainer trainer(strategy, model, loader,
                  {.step = {.accumulate = run.accumulate, .mirror_check_every = 1},
                   .buckets = {.bucket_bytes = run.bucket_bytes, .bucket_bytes_apart = run.bucket_bytes}});
  while (trainer.step()) {
  }
  trainer.finish();
  return variables_of(model);
}

class OverlapTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, OverlapTest, testing::Values(1, 2, 4));

TEST_P(OverlapTest, WeightsOfTwinsAreTheSameBitsForAllSizesOfBucketsAndAsWithoutIt) {
  const Recipe recipes[]{{}, {.accumulate = 3}, {.net = norm_cnn, .optimizer = adam(1e-2F)}};
  for (Recipe run : recipes) {
    const auto expected = overlapped_weights(devices_of<InPlaceTwin>(GetParam()), run);
    for (const std::int64_t bytes : {4, 64, 300, 1 << 20}) {
      run.bucket_bytes = bytes;
      EXPECT_EQ(overlapped_weights(twin_devices(GetParam()), run), expected)
          << bytes << " bytes, " << run.accumulate << " batches a step";
    }
  }
}

// One bucket of everything leaves when the backward pass has ended.
TEST_P(OverlapTest, WeightsAreTheSameBitsForAllSizesOfBuckets) {
  const auto expected = overlapped_weights(own_memory(GetParam()), {.bucket_bytes = 1 << 20});
  for (const std::int64_t bytes : {4, 64, 300}) {
    EXPECT_EQ(overlapped_weights(own_memory(GetParam()), {.bucket_bytes = bytes}), expected) << bytes << " bytes";
  }
}

TEST_P(OverlapTest, TrainsAsOneReplicaDoes) {
  const auto one = overlapped_weights(own_memory(1), {});
  const auto several = overlapped_weights(own_memory(GetParam()), {});
  // A GPU's Muon rounds its products to bf16, the other way where sums differ in their last bit.
  const double tolerance = on_gpu() ? 0.02 : 1e-4;
  for (std::size_t v = 0; v < one.size(); ++v) {
    for (std::size_t i = 0; i < one[v].size(); ++i) ASSERT_NEAR(several[v][i], one[v][i], tolerance) << v;
  }
}

// --- what goes wrong ---

class OverlapFailureTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, OverlapFailureTest, testing::Values(2, 4));

void expect_named(Trainer& trainer, int victim, const char* message) {
  EXPECT_THAT(error_of<DeviceError>([&] {
                while (trainer.step()) {
                }
                trainer.finish();
              }).what(),
              AllOf(HasSubstr("replica " + std::to_string(victim)), HasSubstr(message)));
}

TEST_P(OverlapFailureTest, AReplicaThatFailsBetweenStepsIsNamed) {
  DeviceGroup devices = own_memory(GetParam());
  Strategy strategy(devices, {.announce = false});
  Model model = compiled(strategy, small_mlp);
  {
    Loader loader(blob_batches(), devices);
    Trainer trainer(strategy, model, loader, {.buckets = {.bucket_bytes_apart = 64}});
    trainer.step();
    trainer.finish();
    strategy.stream(GetParam() - 1).call([] { throw Error(ErrorCode::kDevice, "a bit flipped"); });
    expect_named(trainer, GetParam() - 1, "a bit flipped");
  }
  for (const std::string& name : model.variable_names()) model.write_variable(name, model.read_variable(name));
  model.compile({});
  EXPECT_EQ(model.fit(blob_batches(), {.verbose = 0}).epochs(), 1U);
  model.check_mirrored();
}

// Its first buckets have left, the others never will.
TEST_P(OverlapFailureTest, AReplicaThatFailsWithinTheBackwardPassIsNamed) {
  for (const Shape& layer : {Shape{4, 16}, Shape{16, 8}}) {
    DeviceGroup devices = devices_of<HookedTwin>(GetParam());
    Strategy strategy(devices, {.announce = false});
    const auto steps = std::make_shared<int>(0);
    hooks(devices, 1).after_gradient = [&](Stream& stream, const TensorView& weights) {
      if (weights.shape != layer) return;
      stream.call([steps] {
        if (++*steps == 3) throw Error(ErrorCode::kDevice, "a bit flipped");
      });
    };
    TrainingRun run(strategy);
    expect_named(run.trainer, 1, "a bit flipped");
  }
}

TEST(Overlap, AFailureOfOneReplicaReleasesTheOthersThatSumAlready) {
  DeviceGroup devices = devices_of<HookedTwin>(2);
  Strategy strategy(devices, {.announce = false});
  const auto backward_done = devices[0].create_event();
  Gate gate;
  std::atomic<bool> recorded{false};
  hooks(devices, 0).after_gradient = [&](Stream& stream, const TensorView& weights) {
    if (weights.shape != Shape{16, 8}) return;
    stream.record(*backward_done);
    recorded = true;
  };
  hooks(devices, 1).before_loss = [&](Stream& stream) {
    stream.call(gate.blocker());
    stream.call([] { throw Error(ErrorCode::kDevice, "no more"); });
  };
  TrainingRun run(strategy);
  run.trainer.step();
  EXPECT_TRUE(recorded);
  EXPECT_TRUE(eventually(*backward_done));  // this replica waits for the other's sums now
  gate.open();
  expect_named(run.trainer, 1, "no more");
}

}  // namespace
}  // namespace headrace::test
