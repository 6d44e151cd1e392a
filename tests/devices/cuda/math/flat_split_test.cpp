#include "headrace/devices/cuda/math/flat_split.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::cuda {
namespace {

struct SplitVisits {
  int* visits;

  template <int kWidth>
  void run(std::int64_t at) const {
    for (int k = 0; k < kWidth; ++k) ++visits[at + k];
  }
};

TEST(FlatSplit, EveryElementIsVisitedOnce) {
  for (const std::int64_t count : {1, 7, 8, 9, 2047, 2048, 2049, 70003}) {
    std::vector<int> counts(static_cast<std::size_t>(count));
    const FlatSplit split = flat_split(count, 8);
    const std::int64_t threads = flat_blocks(split, 20) * kFlatThreads;
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      run_share<8>(SplitVisits{counts.data()}, split, thread, threads);
    }
    EXPECT_EQ(counts, std::vector<int>(counts.size(), 1)) << count;
  }
}

TEST(FlatSplit, LongArraysLoopInsteadOfAskingForMoreBlocks) {
  EXPECT_EQ(flat_blocks(flat_split(std::int64_t{1} << 40, 4), 1056), 1056);
  EXPECT_EQ(flat_blocks(flat_split(1028, 4), 1056), 2);
  EXPECT_EQ(flat_blocks(flat_split(0, 4), 1056), 1);
}

}  // namespace
}  // namespace headrace::cuda
