// The GPU's kernels run by loops on the host, against the suites of Kernels: their logic, without a GPU.
#include <gtest/gtest.h>

#include "headrace/tests/conformance/collective_suite.h"
#include "headrace/tests/conformance/input_kernels_suite.h"
#include "headrace/tests/conformance/kernels_suite.h"
#include "headrace/tests/support/tree_collective.h"
#include "headrace/tests/support/twin_kernels.h"

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

// The GPU's input kernel run by loops on the host, against the suite of InputKernels: its logic, without a GPU.

namespace {

struct TwinInput {
  static std::string absent() { return {}; }
  static DeviceGroup open(int replicas) { return twin_devices(replicas); }
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(TwinInput, InputKernelsSuite, TwinInput);

// Sums of several GPUs in the tree's order, without one: who sends what to whom, on CPU replicas with a GPU's
// kernels.

namespace {

// Scratch memory for tensors in one piece and in many.
template <std::int64_t kScratchElements>
struct TreeTwin {
  static std::string absent() { return {}; }
  static int max_replicas() { return 8; }
  static DeviceGroup open(int replicas) { return twin_devices(replicas); }
  static std::unique_ptr<Collective> create(DeviceGroup& devices) {
    return std::make_unique<TreeCollective>(devices, kScratchElements);
  }
};

// More parts than one kernel takes: sums of blocks are parts of the same tree.
TEST(TreeTwin, AddsMoreReplicasThanOneKernelTakes) {
  for (const int replicas : {65, 131}) {
    Replicas all(twin_devices(replicas), 300, &TreeTwin<1 << 14>::create);
    all.randomize(1);
    all.upload();
    all.all_reduce();
    const std::vector<float> sums = all.tree_sums();
    for (const int r : {0, 64, replicas - 1}) EXPECT_EQ(all.download(r), sums) << r << " of " << replicas;
  }
}

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(TreeTwinInOnePiece, CollectiveSumsSuite, TreeTwin<1 << 20>);
INSTANTIATE_TYPED_TEST_SUITE_P(TreeTwinInPieces, CollectiveSumsSuite, TreeTwin<4100>);

}  // namespace headrace::test
