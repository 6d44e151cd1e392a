#include "headrace/pipeline/stats.h"

#include <gtest/gtest.h>

#include <limits>

namespace headrace {
namespace {

void add(WaitHistogram& histogram, std::uint64_t ns, std::uint64_t times) {
  histogram.add(WaitHistogram::bucket_of(ns), times);
}

TEST(WaitHistogram, EmptyHasNoQuantiles) {
  const WaitHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.quantile_ns(0.5), 0);
}

TEST(WaitHistogram, BucketsGrowWithTheWait) {
  std::size_t last = 0;
  for (std::uint64_t ns = 0; ns < (std::uint64_t{1} << 40); ns += 1 + ns / 50) {
    const std::size_t bucket = WaitHistogram::bucket_of(ns);
    ASSERT_GE(bucket, last) << ns;
    ASSERT_LE(bucket, last + 1) << ns << ": a bucket was skipped";
    last = bucket;
  }
  EXPECT_LT(WaitHistogram::bucket_of(std::numeric_limits<std::uint64_t>::max()), WaitHistogram::kBuckets);
}

TEST(WaitHistogram, BucketsHoldTheirValueToAnEighth) {
  for (std::uint64_t ns = 1; ns < (std::uint64_t{1} << 40); ns += 1 + ns / 7) {
    const double value = WaitHistogram::value_of(WaitHistogram::bucket_of(ns));
    EXPECT_NEAR(value, static_cast<double>(ns), 0.126 * static_cast<double>(ns)) << ns;
  }
}

TEST(WaitHistogram, QuantilesCountFromBelow) {
  WaitHistogram histogram;
  add(histogram, 1'000, 90);
  add(histogram, 1'000'000, 9);
  add(histogram, 1'000'000'000, 1);
  EXPECT_EQ(histogram.count(), 100U);
  EXPECT_NEAR(histogram.quantile_ns(0.50), 1e3, 125);
  EXPECT_NEAR(histogram.quantile_ns(0.90), 1e3, 125);
  EXPECT_NEAR(histogram.quantile_ns(0.95), 1e6, 125e3);
  EXPECT_NEAR(histogram.quantile_ns(0.99), 1e6, 125e3);
  EXPECT_NEAR(histogram.quantile_ns(1), 1e9, 125e6);
}

TEST(WaitHistogram, IntervalsAreDifferences) {
  WaitHistogram earlier, now;
  add(earlier, 500, 7);
  add(now, 500, 7);
  add(now, 80'000, 2);
  now -= earlier;
  EXPECT_EQ(now.count(), 2U);
  EXPECT_NEAR(now.quantile_ns(0.01), 80e3, 10e3);
  now += earlier;
  EXPECT_EQ(now.count(), 9U);
}

}  // namespace
}  // namespace headrace
