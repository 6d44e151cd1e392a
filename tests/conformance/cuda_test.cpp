// The CUDA backend against the same suites: logical replicas on the first GPU, sums over several GPUs, and NCCL on
// one. Skips where there are none.
#include <fmt/format.h>

#include "headrace/devices/registry.h"
#include "headrace/tests/conformance/collective_suite.h"
#include "headrace/tests/conformance/device_suite.h"
#include "headrace/tests/conformance/input_kernels_suite.h"
#include "headrace/tests/conformance/nccl_suite.h"
#include "headrace/tests/conformance/stream_failure_suite.h"
#include "headrace/tests/conformance/stream_suite.h"
#include "headrace/tests/support/test_devices.h"
#include "headrace/tests/support/thread_world.h"
#include "headrace/tests/support/tree_collective.h"

namespace headrace::test {
namespace {

struct Cuda {
  static std::string absent() { return why_no_gpu(); }
  static DeviceGroup open(int replicas) {
    return open_devices(fmt::format("cuda:0x{}", replicas), DeviceNeed::kMemory);
  }
  static int max_replicas() { return 8; }
  static std::unique_ptr<Collective> create(DeviceGroup& devices) { return create_collective(devices); }
};

int gpus() {
  for (const Backend* backend : backends()) {
    if (backend->name() == "cuda") return static_cast<int>(backend->list().size());
  }
  return 0;
}

// One replica a GPU.
struct CudaGpus {
  static std::string absent() { return gpus() < 2 ? "sums over GPUs need two of them" : ""; }
  static int max_replicas() { return gpus(); }
  static DeviceGroup open(int replicas) {
    std::string spec = "cuda:0";
    for (int gpu = 1; gpu < replicas; ++gpu) spec += fmt::format(",{}", gpu);
    return open_devices(spec, DeviceNeed::kKernels);
  }
  static std::unique_ptr<Collective> create(DeviceGroup& devices) { return create_collective(devices); }
};

// NCCL on the first GPU alone, where the backend itself would not use it.
struct CudaNccl {
  static std::string absent() { return why_no_gpu(); }
  static DeviceGroup open() { return open_devices("cuda:0", DeviceNeed::kKernels); }
  static std::unique_ptr<Collective> create(DeviceGroup& devices) { return create_nccl_collective(devices); }
};

// The same as a world of one worker.
struct CudaNcclWorld : CudaNccl {
  static std::unique_ptr<Collective> create(DeviceGroup& devices) {
    return create_nccl_collective(devices, ThreadWorld(1).join(0));
  }
};

// One worker a GPU, as threads of this process.
struct CudaWorkers : CudaGpus {
  static std::unique_ptr<Collective> create(DeviceGroup& devices) {
    const ThreadWorld world(devices.size());
    return std::make_unique<WorldAsOne>(devices, devices.size(), [&](int rank) { return world.join(rank); });
  }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StreamSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StreamMemorySuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StreamFailureSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, InputKernelsSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, CollectiveSumsSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, CollectiveSuite, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, NcclSuite, CudaNccl);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaGpus, CollectiveSumsSuite, CudaGpus);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaWorld, NcclSuite, CudaNcclWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaWorkers, CollectiveSumsSuite, CudaWorkers);

}  // namespace headrace::test
