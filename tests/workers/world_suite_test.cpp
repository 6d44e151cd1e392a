// The collective of a world against the suite of collectives: workers as threads, over gRPC and Gloo.
#include <fmt/format.h>

#include "headrace/tests/conformance/collective_suite.h"
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/test_devices.h"
#include "headrace/tests/support/thread_world.h"
#include "headrace/tests/workers/world_fixture.h"

namespace headrace::test {
namespace {

std::unique_ptr<Collective> create_world(DeviceGroup& devices) {
  const int workers = workers_of(devices.size());
  if (workers == 1) return create_collective(devices);
  setenv("HEADRACE_WORKERS_MODULE", HEADRACE_WORKERS_MODULE, 0);
  const std::vector<WorkerPlan> plans = plans_of(workers);
  return std::make_unique<WorldAsOne>(devices, workers, [&](int rank) {
    return open_world(plans[static_cast<std::size_t>(rank)],
                      {.start_timeout_seconds = 20, .call_timeout_seconds = 20});
  });
}

struct CpuWorld {
  static std::string absent() { return {}; }
  static int max_replicas() { return 8; }
  static DeviceGroup open(int replicas) {
    return open_devices(fmt::format("cpu:{}", replicas), DeviceNeed::kMemory);
  }
  static std::unique_ptr<Collective> create(DeviceGroup& devices) { return create_world(devices); }
};

// Memory of their own: values pass through pinned memory.
struct DiscreteWorld : CpuWorld {
  static DeviceGroup open(int replicas) { return devices_of<DiscreteDevice>(replicas); }
};

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(
    CollectiveSuite);  // of the same header: needs all replicas in one process
INSTANTIATE_TYPED_TEST_SUITE_P(CpuWorld, CollectiveSumsSuite, CpuWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(DiscreteWorld, CollectiveSumsSuite, DiscreteWorld);

}  // namespace headrace::test
