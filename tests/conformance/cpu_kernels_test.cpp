// The CPU's kernels against the suites of Kernels.
#include "headrace/devices/registry.h"
#include "headrace/tests/conformance/kernels_suite.h"

namespace headrace::test {
namespace {

struct CpuKernelsTarget {
  static std::string absent() { return {}; }
  static DeviceGroup open() { return open_devices("cpu:1"); }
  static double slack() { return 1; }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsBatchNormSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsConvSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsDenseSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsElementwiseSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsFusedNormSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsHalfSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsMuonSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsPoolingSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsTrainingSuite, CpuKernelsTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, KernelsViewsSuite, CpuKernelsTarget);

}  // namespace headrace::test
