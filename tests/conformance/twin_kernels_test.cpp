// The GPU's kernels run by loops on the host, against the suites of Kernels: their logic, without a GPU.
#include "headrace/tests/support/twin_kernels.h"

#include "headrace/tests/conformance/kernels_suite.h"

namespace headrace::test {
namespace {

struct TwinTarget {
  static std::string absent() { return {}; }
  static DeviceGroup open() { return twin_devices(1); }
  static double slack() { return 1; }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsAttentionSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsBatchNormSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsConvSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsDepthwiseSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsCountsSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsDenseSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsElementwiseSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsFusedNormSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsHalfProductsSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsHalfSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsJoiningSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsLossesSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsPoolingSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsSequencesSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsTrainingSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsUpdateSuite, TwinTarget);
INSTANTIATE_TYPED_TEST_SUITE_P(Twin, KernelsViewsSuite, TwinTarget);

}  // namespace headrace::test
