// A whole training through the CUDA backend's host side. Its kernels run on the host, so the weights are bit for
// bit those of the same kernels on a CPU's streams: nothing is lost in graphs, pool, events and copies.
#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/tools/recipes/speed_recipe.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

class CudaTraining : public test::FakeCuda {};

Dataset data() { return test::blobs(60, {6, 6, 2}).batch({.global_batch = 8}); }

std::vector<std::vector<float>> trained(DeviceGroup devices, int accumulate,
                                        const Optimizer& optimizer = adam(1e-2F)) {
  Strategy strategy(devices, {.announce = false});
  Model model = test::compiled(strategy, test::norm_cnn, optimizer);
  model.fit(data(), {.epochs = 3, .validation = data(), .verbose = 0, .step = {.accumulate = accumulate}});
  std::vector<std::vector<float>> values = test::variables_of(model);
  for (const std::string& name : model.optimizer_variable_names()) values.push_back(model.read_variable(name));
  return values;
}

// With one thread, as the fake's products.
DeviceGroup one_twin() {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<test::TwinDevice>(std::make_unique<CpuDevice>("cpu:0")));
  return DeviceGroup(std::move(devices));
}

TEST_F(CudaTraining, GivesTheWeightsOfItsTwin) {
  for (const int accumulate : {1, 2}) {
    EXPECT_EQ(trained(open(), accumulate), trained(one_twin(), accumulate));
    const Optimizer optimizer = test::with_all_around(sgd(0.1F, {.momentum = 0.9F}));
    EXPECT_EQ(trained(open(), accumulate, optimizer), trained(one_twin(), accumulate, optimizer));
  }
}

// Kernels behind a host function that fails run all the same: the update waits for those of a loss.
TEST_F(CudaTraining, AStepWhoseLossFailsOnTheHostUpdatesNothing) {
  const auto fit = [](Model& model, int failing, const FitOptions& options) {
    const auto seen = std::make_shared<int>(0);
    model.compile({.optimizer = sgd(0.1F),
                   .loss = host_loss("picky",
                                     [=](const HostExample& example) {
                                       if (++*seen == failing)
                                         throw Error(ErrorCode::kInvalidArgument, "not this one");
                                       for (float& slope : example.gradient) slope = 0.1F;
                                       return 1.0;
                                     }),
                   .metrics = {}});
    model.fit(data(), options);
  };
  DeviceGroup devices = open(), others = open();
  Strategy strategy(devices, {.announce = false}), other(others, {.announce = false});
  Model model = strategy.build(test::small_cnn, {.seed = 3}), once = other.build(test::small_cnn, {.seed = 3});
  try {
    fit(model, 12, {.verbose = 0});
    FAIL();
  } catch (const DeviceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("failed in step 1"), std::string::npos) << message;
    EXPECT_NE(message.find("not this one"), std::string::npos) << message;
  }
  fit(once, 0, {.verbose = 0, .stop_after_steps = 1});
  EXPECT_EQ(test::variables_of(model), test::variables_of(once));
}

// Two replicas, of one GPU or of two, whose collective fails while steps are in flight: kernels behind it run all
// the same, on gradients that were not summed.
struct FailedSum {
  DeviceGroup devices;
  Strategy strategy{devices, {.announce = false}};
  Model model = test::compiled(strategy, test::small_cnn, test::with_all_around(sgd(0.1F, {.momentum = 0.9F})));
  Loader loader{test::blobs(60, {6, 6, 2}).batch({.global_batch = 8}), devices, {.epochs = 20}};
  Trainer trainer{strategy, model, loader};

  explicit FailedSum(const std::string& spec) : devices(open_devices(spec)) {}

  void step_by_hand() {
    trainer.forward(*trainer.take());
    trainer.backward();
    trainer.all_reduce();
    trainer.apply_gradients();
  }
  std::vector<std::vector<float>> values() {
    std::vector<std::vector<float>> all = test::variables_of(model);
    for (const std::string& name : model.optimizer_variable_names()) all.push_back(model.read_variable(name));
    return all;
  }
  // Runs steps until one fails; returns its message.
  std::string failure(bool by_hand) {
    try {
      for (int i = 0; i < 50; ++i) by_hand ? step_by_hand() : static_cast<void>(trainer.step());
      return "no error";
    } catch (const DeviceError& error) {
      return error.what();
    }
  }
};

TEST_F(CudaTraining, AStepWhoseSumFailsUpdatesNothingAndIsNamed) {
  for (const bool by_hand : {false, true}) {
    for (const std::string spec : {"cuda:0x2", "cuda:0,1"}) {
      SCOPED_TRACE(spec + (by_hand ? " by hand" : ""));
      FailedSum run(spec);
      for (int i = 0; i < 3; ++i) by_hand ? run.step_by_hand() : static_cast<void>(run.trainer.step());
      run.trainer.finish();
      const auto before = run.values();
      if (spec == "cuda:0x2") {
        test::fake_cuda::time_out_meetings(0);
      } else {
        run.strategy.collective().abort("a worker is lost");
      }
      const std::string message = run.failure(by_hand);
      EXPECT_THAT(message, testing::HasSubstr("failed in step 3"));
      EXPECT_THAT(message, testing::AnyOf(testing::HasSubstr("a collective timed out: cuda:0"),
                                          testing::HasSubstr("a worker is lost")));
      EXPECT_EQ(run.values(), before);
      test::fake_cuda::clear();
    }
  }
}

// The next training has a collective of its own, also where replicas and loader leave few queues.
TEST_F(CudaTraining, AStrategyWhoseSumFailedTrainsAgain) {
  FailedSum run("cuda:0x8");
  test::fake_cuda::time_out_meetings(0);
  EXPECT_THAT(run.failure(false), testing::HasSubstr("failed in step 0"));
  test::fake_cuda::clear();
  EXPECT_EQ(run.strategy.collective().failure_word(0) == nullptr, false);
  EXPECT_EQ(*run.strategy.collective().failure_word(0), 0U);
  Loader again(test::blobs(64, {6, 6, 2}).batch({.global_batch = 8}), run.devices);
  Trainer trainer(run.strategy, run.model, again);
  EXPECT_TRUE(trainer.step());
  EXPECT_NO_THROW(trainer.finish());
}

// The error of a GPU that is lost in the middle reaches the caller with its step, and the end does not hang.
TEST_F(CudaTraining, ALostGpuEndsTheRunWithItsName) {
  for (const char* call :
       {"cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemcpyBatchAsync", "cudaEventSynchronize", "cudaEventQuery",
        "cudaEventRecordWithFlags", "cudaStreamWaitEvent", "cudaEventElapsedTime"}) {
    for (const int works : {0, 1, 7}) {
      SCOPED_TRACE(std::string(call) + " after " + std::to_string(works));
      DeviceGroup devices = open();
      Strategy strategy(devices, {.announce = false});
      Model model = test::compiled(strategy, test::norm_cnn);
      test::fake_cuda::fail(call, works, cudaErrorIllegalAddress);
      try {
        model.fit(data(), {.epochs = 3, .verbose = 0});
        ADD_FAILURE() << "no error";
      } catch (const DeviceError& error) {
        EXPECT_EQ(error.device(), "cuda:0") << error.what();
      }
      test::fake_cuda::clear();
    }
  }
}

}  // namespace

// In which order gradients and running statistics of several GPUs are added: NCCL's, which is fast, or with
// virtual shards the one that does not depend on the GPUs.

namespace {

using test::fake_cuda::Calls;
using test::fake_cuda::calls_here;

class SumOrder : public test::FakeCuda {
 protected:
  // What a training on two GPUs asks of NCCL: sums, in its order, and messages, for sums in the fixed one.
  static std::pair<std::uint64_t, std::uint64_t> sums_of(const StepOptions& step) {
    const auto counted = [](const char* name) {
      const Calls calls = calls_here();
      const auto found = calls.find(name);
      return found == calls.end() ? 0 : found->second;
    };
    const std::pair before(counted("ncclAllReduce"), counted("ncclSend"));
    DeviceGroup devices = open_devices("cuda:0,1");
    Strategy strategy(devices, {.announce = false});
    Model model = test::compiled(strategy, test::norm_cnn);
    model.fit(test::blobs(32, {6, 6, 2}).batch({.global_batch = 8}),
              {.verbose = 0, .step = step, .stop_after_steps = 2});
    return {counted("ncclAllReduce") - before.first, counted("ncclSend") - before.second};
  }
};

// Recorded once on each replica: of gradients, and of running statistics. A sum in the fixed order is two rounds
// of messages to both GPUs, and before the first one all are connected.
TEST_F(SumOrder, IsTheTreesWithVirtualShardsAlone) {
  constexpr std::uint64_t kConnecting = 2 * 2, kMessages = kConnecting + 4 * 2 * 2;
  EXPECT_EQ(sums_of({.virtual_shards = 4}), std::pair(std::uint64_t{0}, kMessages));
  EXPECT_EQ(sums_of({.accumulate = 2, .virtual_shards = 2}), std::pair(std::uint64_t{0}, kMessages));
  EXPECT_EQ(sums_of({}), std::pair(std::uint64_t{4}, std::uint64_t{0}));
}

}  // namespace
}  // namespace headrace

// What of the whitening initialisation a GPU's host does before the clock of a training starts, and what on it.

namespace headrace::tools {
namespace {

class WhiteningCalls : public test::FakeCuda {
 protected:
  static std::int64_t count(const std::string& call) { return std::ranges::count(test::fake_cuda::log(), call); }
};

TEST_F(WhiteningCalls, UploadOnceFromPinnedMemoryAndWaitOnce) {
  constexpr std::int64_t kImages = 1200, kChunks = 3, kElements = 6 * 6 * 3;
  ImageBlock images{.shape = {kImages, 6, 6, 3}, .values = std::vector<float>(kImages * kElements)};
  for (std::size_t i = 0; i < images.values.size(); ++i)
    images.values[i] = static_cast<float>(i * 7919 % 1000) / 1000;
  DeviceGroup devices = open();
  ASSERT_NE(devices[0].kernels(), nullptr);
  test::fake_cuda::start_log();
  Whitening whitening(images, devices[0]);
  EXPECT_EQ(count("cudaMemcpyAsync"), kChunks + 1) << "the images and identity filters";
  EXPECT_EQ(count("pageable copy"), 1) << "these alone";
  test::fake_cuda::start_log();
  const std::vector<float> filters = whitening.filters();
  EXPECT_EQ(count("cudaMemcpyAsync"), kChunks) << "sums back";
  EXPECT_EQ(count("pageable copy"), 0);
  EXPECT_EQ(count("cudaStreamSynchronize"), 1);
  EXPECT_EQ(count("cudaMalloc") + count("cudaHostAlloc") + count("cudaMallocFromPoolAsync"), 0);
  CpuDevice host("cpu:0");  // with one thread, as the fake's products
  EXPECT_EQ(filters, whitening_filters(images, host));
}

}  // namespace
}  // namespace headrace::tools
