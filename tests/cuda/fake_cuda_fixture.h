// The CUDA backend on the fake runtime, found by the registry as a real one is.
#pragma once

#include "headrace/devices/registry.h"
#include "headrace/tests/support/fake_cuda/nccl.h"
#include "headrace/tests/support/fake_cuda/runtime.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

class FakeCuda : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("HEADRACE_CUDA_MODULE", HEADRACE_FAKE_CUDA_MODULE, 1);
    setenv("HEADRACE_CUDA_MATH_MODULE", HEADRACE_FAKE_CUDA_MODULE, 1);
    setenv("HEADRACE_CUDA_POLL_US", "0", 1);  // polls would be calls, in a number that depends on the time
  }
  void TearDown() override {
    EXPECT_THAT(fake_cuda::misplaced_calls(), ::testing::IsEmpty());
    EXPECT_THAT(fake_nccl::misuses(), ::testing::IsEmpty());
    fake_cuda::clear();
    fake_nccl::clear();
  }

  static DeviceGroup open(int replicas = 1) { return open_devices("cuda:0x" + std::to_string(replicas)); }
};

}  // namespace headrace::test
