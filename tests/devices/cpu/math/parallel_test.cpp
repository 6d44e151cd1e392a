#include "headrace/devices/cpu/math/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace headrace {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

std::vector<Range> ranges_of(std::int64_t count, std::int64_t grain) {
  std::vector<Range> ranges;
  std::mutex mutex;
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::ranges::sort(ranges);
  return ranges;
}

class ParallelRangesTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    if (GetParam() > 1) GTEST_SKIP() << "ThreadSanitizer does not see libgomp start and join threads";
#endif
    omp_set_num_threads(GetParam());
  }
  void TearDown() override { omp_set_num_threads(before_); }

 private:
  int before_ = omp_get_max_threads();
};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelRangesTest, testing::Values(1, 2, 3, 8));

TEST_P(ParallelRangesTest, CoverAllOfItOnceInEqualParts) {
  for (const std::int64_t grain : {std::int64_t{1}, std::int64_t{100}, row_grain(1), row_grain(3)}) {
    for (const std::int64_t count : {grain, 2 * grain, 2 * grain + 1, 3 * grain + grain / 2, 50 * grain - 1}) {
      const std::vector<Range> ranges = ranges_of(count, grain);
      ASSERT_FALSE(ranges.empty());
      ASSERT_EQ(static_cast<std::int64_t>(ranges.size()),
                std::min<std::int64_t>(GetParam(), std::max<std::int64_t>(1, count / grain)));
      std::int64_t at = 0, shortest = count, longest = 0;
      for (const auto& [begin, end] : ranges) {
        ASSERT_EQ(begin, at);
        shortest = std::min(shortest, end - begin);
        longest = std::max(longest, end - begin);
        at = end;
      }
      EXPECT_EQ(at, count);
      EXPECT_LE(longest - shortest, 2 * range_unit(grain)) << count << " by " << grain;
    }
  }
}

TEST_P(ParallelRangesTest, WhatIsNotWorthTwoThreadsStaysInThisOne) {
  EXPECT_EQ(ranges_of(199, 100), (std::vector<Range>{{0, 199}}));
  EXPECT_TRUE(ranges_of(0, 100).empty());
}

}  // namespace
}  // namespace headrace
