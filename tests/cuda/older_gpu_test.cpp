// What the user of a GPU that the kernels do not run on is told.
#include <gmock/gmock.h>

#include "headrace/devices/base/error.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"

namespace headrace {
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
