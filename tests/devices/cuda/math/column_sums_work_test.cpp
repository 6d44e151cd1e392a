#include <gtest/gtest.h>

#include <vector>

#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::cuda {
namespace {

TEST(ColumnTotals, MomentsOfPartsAreThoseOfTheWhole) {
  const auto values = test::reals(test::random_floats(1000, 1));
  const auto moments = [&](std::size_t begin, std::size_t end) {
    const test::Reals part(values.begin() + static_cast<std::ptrdiff_t>(begin),
                           values.begin() + static_cast<std::ptrdiff_t>(end));
    const test::Statistics of = test::statistics({part.size(), part.size(), 1}, part);
    const auto count = static_cast<double>(part.size());
    return Moments<double>{count, of.mean[0], of.variance[0] * count};
  };
  const Moments<double> whole = moments(0, 1000);
  const Moments<double> joined = merged(merged(moments(0, 1), moments(1, 300)), moments(300, 1000));
  EXPECT_EQ(joined.count, 1000);
  EXPECT_NEAR(joined.mean, whole.mean, 1e-12);
  EXPECT_NEAR(joined.deviation, whole.deviation, 1e-9);
}

TEST(ColumnTotals, TheSumOfNothingChangesNothing) {
  const Moments<float> some{3, 2, 1};
  for (const Moments<float>& same : {merged(some, Moments<float>{}), merged(Moments<float>{}, some)}) {
    EXPECT_EQ(same.count, 3);
    EXPECT_EQ(same.mean, 2);
    EXPECT_EQ(same.deviation, 1);
  }
  EXPECT_EQ(merged(Moments<float>{}, Moments<float>{}).count, 0);
}

// The mean is 10,000 times the deviation; some blocks are empty, and a lane has more totals than it loads at
// once.
TEST(ColumnTotals, LanesOfMomentsAddUpToTheMomentsOfAllBlocks) {
  constexpr std::int64_t kBlocks = 1500, kColumns = 3;
  std::vector<Moments<float>> blocks;
  for (std::int64_t i = 0; i < kBlocks * kColumns; ++i) {
    const auto part = static_cast<float>(i % 17);
    blocks.push_back(i % 5 == 4 ? Moments<float>{} : Moments<float>{1 + part, 1e4F + part / 16, part / 32});
  }
  for (std::int64_t column = 0; column < kColumns; ++column) {
    const auto& first = blocks[static_cast<std::size_t>(column)];
    Moments<double> expected{};
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      const auto& of = blocks[static_cast<std::size_t>(b * kColumns + column)];
      expected = merged(expected, Moments<double>{of.count, of.mean, of.deviation});
    }
    PivotSums sums{};
    for (int lane = 0; lane < kFinishLanes; ++lane) {
      sums = merged(sums, lane_total(blocks.data(), kBlocks, kColumns, column, lane));
    }
    const Moments<double> all = completed(sums, first);
    EXPECT_EQ(all.count, expected.count);
    EXPECT_NEAR(all.mean, expected.mean, 1e-10);
    EXPECT_NEAR(all.deviation, expected.deviation, 1e-9 * expected.deviation);
  }
  EXPECT_EQ(completed(PivotSums{}, Moments<float>{}).count, 0);
}

TEST(ColumnTotals, RadixTotalsAreSumsInOrder) {
  const std::vector<Sum<float>> parts(2 * kRadix, Sum<float>{3});
  EXPECT_EQ(radix_total(parts.data(), 2).value, 3 * kRadix);
}

TEST(ColumnTotals, RealRowsAreThoseOfRealExamplesAndNoMoreThanThereAre) {
  const StepScalars scalars{.rows = 3};
  EXPECT_EQ((RealRows{&scalars, 16, 64}.count()), 48);
  EXPECT_EQ((RealRows{&scalars, 16, 32}.count()), 32);
  EXPECT_EQ((RealRows{nullptr, 16, 64}.count()), 64);
}

}  // namespace
}  // namespace headrace::cuda
