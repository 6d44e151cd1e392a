// The CUDA backend against the same suites, logical replicas on the first GPU. Skips where there is none.
#include <fmt/format.h>

#include "headrace/devices/registry.h"
#include "headrace/tests/conformance/collective_suite.h"
#include "headrace/tests/conformance/device_suite.h"
#include "headrace/tests/conformance/input_kernels_suite.h"
#include "headrace/tests/conformance/stream_failure_suite.h"
#include "headrace/tests/conformance/stream_memory_suite.h"
#include "headrace/tests/conformance/stream_suite.h"
#include "headrace/tests/support/test_devices.h"

namespace headrace::test {
namespace {

struct Cuda {
  static std::string absent() { return why_no_gpu(); }
  static DeviceGroup open(int replicas) {
    return open_devices(fmt::format("cuda:0x{}", replicas), DeviceNeed::kMemory);
  }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StreamSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StreamMemorySuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StreamFailureSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, InputKernelsSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, CollectiveSuite, Cuda);

}  // namespace headrace::test
