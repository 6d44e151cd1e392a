// Sums of several GPUs in the tree's order, without one: who sends what to whom, on CPU replicas with a GPU's
// kernels.
#include <gtest/gtest.h>

#include "headrace/tests/conformance/collective_sums_suite.h"
#include "headrace/tests/support/tree_collective.h"
#include "headrace/tests/support/twin_kernels.h"

namespace headrace::test {
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
