// The CPU backend against the suites of the devices' interfaces.
#include <fmt/format.h>

#include "headrace/devices/registry.h"
#include "headrace/tests/conformance/collective_suite.h"
#include "headrace/tests/conformance/device_suite.h"
#include "headrace/tests/conformance/input_kernels_suite.h"
#include "headrace/tests/conformance/stream_failure_suite.h"
#include "headrace/tests/conformance/stream_suite.h"

namespace headrace::test {
namespace {

struct Cpu {
  static std::string absent() { return {}; }
  static DeviceGroup open(int replicas) {
    return open_devices(fmt::format("cpu:{}", replicas), DeviceNeed::kMemory);
  }
  static int max_replicas() { return 8; }
  static std::unique_ptr<Collective> create(DeviceGroup& devices) { return create_collective(devices); }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, DeviceSuite, Cpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, StreamSuite, Cpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, StreamMemorySuite, Cpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, StreamFailureSuite, Cpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, InputKernelsSuite, Cpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, CollectiveSumsSuite, Cpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, CollectiveSuite, Cpu);

}  // namespace headrace::test
