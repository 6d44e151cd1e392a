#include "headrace/pipeline/stats.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(LoaderStats, TwoIntervalsTogetherAreTheWhole) {
  LoaderStats earlier{.elapsed_ns = 100,
                      .batches = 2,
                      .examples = 64,
                      .bytes = 640,
                      .consumer_wait_ns = 10,
                      .ready_batches = 1,
                      .asked = 2,
                      .ready_share = 0.5,
                      .slots = 3,
                      .cache = {.hits = 5, .misses = 7},
                      .bad_records = 1};
  earlier.stages = {{.name = "read", .threads = 4, .items = 64, .busy_ns = 80}};
  LoaderStats later = earlier;
  later.examples = 32;
  later.ready_batches = 4;
  later.asked = 1;
  later.ready_share = 1;
  const LoaderStats both = later.after(earlier);
  EXPECT_EQ(both.elapsed_ns, 200U);
  EXPECT_EQ(both.examples, 96U);
  EXPECT_EQ(both.asked, 3U);
  EXPECT_NEAR(both.ready_batches, 2, 1e-12);
  EXPECT_NEAR(both.ready_share, 2.0 / 3, 1e-12);
  EXPECT_EQ(both.slots, 3) << "is not counted up";
  EXPECT_EQ(both.cache.misses, 14U);
  EXPECT_EQ(both.bad_records, 2U);
  EXPECT_EQ(both.stages[0].items, 128U);
  EXPECT_EQ(both.stages[0].threads, 4);
  EXPECT_EQ(both.since(earlier).examples, later.examples);
  EXPECT_NEAR(both.since(earlier).ready_batches, later.ready_batches, 1e-12);
}

TEST(LoaderStats, AnIntervalIsWhatHappenedInBetween) {
  LoaderStats earlier{.elapsed_ns = 1'000'000'000,
                      .batches = 10,
                      .examples = 320,
                      .bytes = 3200,
                      .consumer_wait_ns = 500'000'000,
                      .first_batch_ns = 7,
                      .ready_batches = 0.5,
                      .asked = 10,
                      .ready_share = 0.1,
                      .slots = 3};
  earlier.stages = {{.name = "read", .kind = StageKind::kRead, .threads = 4, .items = 320, .busy_ns = 640'000}};
  LoaderStats now = earlier;
  now.elapsed_ns = 3'000'000'000;
  now.batches = 40;
  now.examples = 1280;
  now.consumer_wait_ns = 700'000'000;
  now.asked = 40;
  now.ready_batches = 1.25;  // 45 more over 30 more
  now.ready_share = 0.7;     // 27 of 30 more
  now.stages[0].items = 1280;
  now.stages[0].busy_ns = 8'640'000;

  const LoaderStats interval = now.since(earlier);
  EXPECT_EQ(interval.elapsed_ns, 2'000'000'000U);
  EXPECT_EQ(interval.batches, 30U);
  EXPECT_DOUBLE_EQ(interval.examples_per_second(), 480);
  EXPECT_EQ(interval.consumer_wait_ns, 200'000'000U);
  EXPECT_EQ(interval.first_batch_ns, 7U);
  EXPECT_EQ(interval.slots, 3);
  EXPECT_NEAR(interval.ready_batches, 1.5, 1e-9);
  EXPECT_NEAR(interval.ready_share, 0.9, 1e-9);
  ASSERT_EQ(interval.stages.size(), 1U);
  EXPECT_EQ(interval.stages[0].items, 960U);
  EXPECT_NEAR(interval.stages[0].ns_per_item(), 8e6 / 960, 1e-6);
  EXPECT_NEAR(interval.stages[0].occupancy(interval.elapsed_ns), 1e-3, 1e-9);
  EXPECT_THAT(interval.summary(), HasSubstr("480 images/s"));
  EXPECT_THAT(interval.summary(), HasSubstr("consumer wait 10.0 %; 90 % of batches were ready"));
}

TEST(LoaderStats, NothingHappenedIsNoDivisionByZero) {
  const LoaderStats none;
  EXPECT_EQ(none.since(none).examples_per_second(), 0);
  EXPECT_EQ(none.since(none).ready_share, 0);
  EXPECT_EQ(StageStats{}.ns_per_item(), 0);
  EXPECT_EQ(StageStats{}.occupancy(0), 0);
}

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

}  // namespace headrace::test
