// A GPU's kernels against the suites of Kernels. Skips where there is no GPU, or no mathematics for it.
#include "headrace/devices/registry.h"
#include "headrace/tests/conformance/kernels_suite.h"
#include "headrace/tests/support/test_devices.h"

namespace headrace::test {
namespace {

struct CudaKernelsTarget {
  static std::string absent() {
    if (const std::string why = why_no_gpu(); !why.empty()) return why;
    const DeviceGroup devices = open_devices("cuda:0", DeviceNeed::kMemory);
    return devices[0].kernels() == nullptr ? "the CUDA module has no mathematics: see `headrace doctor`" : "";
  }
  static DeviceGroup open() { return open_devices("cuda:0"); }
  // Sums of products in another order, hardware functions of two units in the last place.
  static double slack() { return 4; }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsAttentionSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsBatchNormSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsConvSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsDepthwiseSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsCountsSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsDenseSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsElementwiseSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsFusedNormSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsHalfProductsSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsHalfSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsJoiningSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsLossesSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsMuonSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsPoolingSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsSequencesSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsTrainingSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsUpdateSuite, CudaKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, KernelsViewsSuite, CudaKernelsTarget);

}  // namespace headrace::test
