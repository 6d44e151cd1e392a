// When kernels are loaded: one that is loaded at its first use may wait for the GPU, where replicas may be waiting
// for one another by then.
#include "headrace/devices/collective.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/test.h"

namespace headrace {
namespace {

class LoadedKernels : public test::FakeCuda {
 protected:
  // Those of `calls` since the log began, in their order.
  static std::vector<std::string> order_of(const std::vector<std::string>& calls) {
    std::vector<std::string> found;
    std::ranges::copy_if(test::fake_cuda::log(), std::back_inserter(found),
                         [&](const std::string& call) { return std::ranges::count(calls, call) > 0; });
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }
};

TEST_F(LoadedKernels, AreThoseOfTheInputBeforeAReplicaCanWait) {
  test::fake_cuda::start_log();
  DeviceGroup devices = open(2);
  EXPECT_THAT(order_of({"load image kernels", "load window kernels", "load jpeg kernels"}),
              ::testing::IsSupersetOf({"load image kernels", "load window kernels", "load jpeg kernels"}));
  const std::unique_ptr<Collective> collective = create_collective(devices);
  const std::vector<std::string> order = order_of(
      {"load image kernels", "load window kernels", "load jpeg kernels", "load rendezvous kernels", "meet"});
  ASSERT_GE(order.size(), 5U);
  EXPECT_EQ(order[order.size() - 2], "load rendezvous kernels");
  EXPECT_EQ(order.back(), "meet") << "nothing is loaded once somebody waits";
}

TEST_F(LoadedKernels, AreThereOnEachGpu) {
  for (const char* device : {"cuda:0", "cuda:1"}) {
    test::fake_cuda::start_log();
    const DeviceGroup devices = open_devices(device);
    EXPECT_THAT(test::fake_cuda::log(),
                ::testing::IsSupersetOf({"load image kernels", "load window kernels", "load jpeg kernels"}))
        << device;
  }
}

TEST_F(LoadedKernels, DecodeTheStreamOfTheHost) {
  const auto dataset = [] {
    return Dataset::from(test::fake_jpegs(40))
        .decode()
        .map(random_resized_crop({.size = 64}) | flip() | normalize({0.5F}, {0.25F}))
        .batch({.global_batch = 16});
  };
  const auto expected = test::cpu_digests_of(dataset(), {.epochs = 2});
  DeviceGroup devices = open(2);
  Loader loader(dataset(), devices, {.epochs = 2, .decode = ConvertAt::kDevice});
  EXPECT_EQ(test::digests_of(loader, devices), expected);
  EXPECT_GT(loader.stats().device_decoded, 40U);
}

}  // namespace

// What the user of a GPU that the kernels do not run on is told.

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using OlderGpu = test::FakeCuda;

std::string refusal(const std::string& spec) {
  try {
    return "opened " + open_devices(spec, DeviceNeed::kMemory).to_string();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(error.device(), "cuda:0");
    return error.what();
  }
}

const Backend& cuda_backend() { return *backends().back(); }

TEST_F(OlderGpu, IsRefusedByItsComputeCapability) {
  for (const auto& [major, minor] : {std::pair(7, 0), std::pair(7, 5)}) {
    test::fake_cuda::set_compute_capability(major, minor);
    for (const char* spec : {"cuda", "cuda:0", "cuda:0x2"}) {
      EXPECT_THAT(refusal(spec), AllOf(HasSubstr("its compute capability is " + std::to_string(major) + "." +
                                                 std::to_string(minor)),
                                       HasSubstr("need 8.0 or newer"), HasSubstr("use a newer GPU, or `cpu`")))
          << spec;
    }
  }
}

TEST_F(OlderGpu, AutoLeavesItOut) {
  EXPECT_EQ(open_devices("auto", DeviceNeed::kMemory).to_string(), "cuda:0, cuda:1");
  test::fake_cuda::set_compute_capability(7, 5);
  EXPECT_EQ(open_devices("auto", DeviceNeed::kMemory).to_string(), "cpu:0");
}

TEST_F(OlderGpu, IsInTheDoctorsFindings) {
  test::fake_cuda::set_compute_capability(7, 5);
  int gpus = 0;
  for (const Finding& finding : cuda_backend().diagnose()) {
    if (!finding.name.starts_with("GPU cuda:")) continue;
    ++gpus;
    EXPECT_FALSE(finding.found);
    EXPECT_THAT(finding.version, HasSubstr("sm_75"));
    EXPECT_THAT(finding.hint, HasSubstr("its compute capability is 7.5"));
  }
  EXPECT_EQ(gpus, 2);
}

TEST_F(OlderGpu, ANewerOneIsOpenedAndSaidToCompileFirst) {
  test::fake_cuda::set_compute_capability(12, 0);
  DeviceGroup devices = open_devices("cuda", DeviceNeed::kMemory);
  EXPECT_THAT(devices[0].info().description, HasSubstr("sm_120, kernels compiled from PTX at first use"));
  test::fake_cuda::set_compute_capability(8, 9);
  EXPECT_EQ(cuda_backend().list()[0].description, "no GPU, sm_89");
}

}  // namespace
}  // namespace headrace
