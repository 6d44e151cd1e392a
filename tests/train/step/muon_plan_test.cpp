#include "headrace/train/step/muon_plan.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using Lengths = std::vector<std::size_t>;

// What all batches take, each padded to its largest matrix.
double padded_operations(const std::vector<Shape>& matrices, const Lengths& lengths, int iterations) {
  double operations = 0;
  std::size_t next = 0;
  for (const std::size_t length : lengths) {
    double rows = 0, columns = 0;
    for (std::size_t i = next; i < next + length; ++i) {
      const auto outputs = static_cast<double>(matrices[i][0]);
      const double inputs = static_cast<double>(matrices[i].elements()) / outputs;
      rows = std::max(rows, std::min(outputs, inputs));
      columns = std::max(columns, std::max(outputs, inputs));
    }
    operations += muon_operations(length, rows, columns, iterations);
    next += length;
  }
  return operations;
}

// Those of cifar10_speed_net, the last layer's first.
const std::vector<Shape> kSpeedNet{{256, 3, 3, 256}, {256, 3, 3, 256}, {256, 3, 3, 256},
                                   {256, 3, 3, 64},  {64, 3, 3, 64},   {64, 3, 3, 24}};

TEST(MuonBatches, TakeLargeMatricesApartFromSmallOnes) {
  const Lengths lengths = muon_batches(kSpeedNet, 3);
  EXPECT_EQ(lengths, (Lengths{3, 3}));
  EXPECT_NEAR(padded_operations(kSpeedNet, {6}, 3), 11.5e9, 0.05e9);
  EXPECT_NEAR(padded_operations(kSpeedNet, lengths, 3), 7.4e9, 0.05e9);
  EXPECT_NEAR(padded_operations(kSpeedNet, {1, 1, 1, 1, 1, 1}, 3), 6.3e9, 0.05e9) << "without padding";
}

TEST(MuonBatches, KeepSmallMatricesTogether) {
  EXPECT_EQ(muon_batches(std::vector<Shape>{{8, 4}, {300, 7}, {2, 90}, {64, 64}}, 3), (Lengths{4}));
  EXPECT_EQ(muon_batches(std::vector<Shape>{{1024, 1024}, {1, 1}, {1024, 1024}}, 3), (Lengths{1, 1, 1}));
  EXPECT_EQ(muon_batches(std::vector<Shape>{{512, 4608}}, 6), (Lengths{1}));
  EXPECT_TRUE(muon_batches({}, 3).empty());
}

TEST(MuonBatches, ATallMatrixIsAWideOne) {
  std::vector<Shape> turned;
  for (const Shape& shape : kSpeedNet) turned.push_back({shape.elements() / shape[0], shape[0]});
  EXPECT_EQ(muon_batches(turned, 3), muon_batches(kSpeedNet, 3));
}

// Against all ways to divide seven matrices.
TEST(MuonBatches, CostTheLeast) {
  constexpr int kCount = 7, kIterations = 3;
  const auto cost = [](const std::vector<Shape>& matrices, const Lengths& lengths) {
    return padded_operations(matrices, lengths, kIterations) + static_cast<double>(lengths.size()) * 13 * 3e8;
  };
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Philox random({.seed = seed});
    std::vector<Shape> matrices;
    for (int i = 0; i < kCount; ++i) {
      matrices.push_back({1 + std::int64_t{random.below(700)}, 1 + std::int64_t{random.below(3000)}});
    }
    const double chosen = cost(matrices, muon_batches(matrices, kIterations));
    for (unsigned int cuts = 0; cuts < 1U << (kCount - 1); ++cuts) {
      Lengths lengths{1};
      for (int i = 0; i + 1 < kCount; ++i) {
        if ((cuts >> i & 1U) != 0) {
          lengths.push_back(1);
        } else {
          ++lengths.back();
        }
      }
      ASSERT_LE(chosen, cost(matrices, lengths) * (1 + 1e-12)) << seed << ", " << cuts;
    }
  }
}

TEST(NormSchedule, ScalesInEveryUpdateUnlessToldOtherwise) {
  const NormSchedule schedule({});
  for (std::uint64_t step = 0; step < 100; ++step) EXPECT_TRUE(schedule.scales(step)) << step;
  const NormSchedule third({.first = 3});
  for (std::uint64_t step = 0; step < 100; ++step) EXPECT_EQ(third.scales(step), step % 3 == 2) << step;
}

// Against the rule, carried out update by update; asked in an order of its own.
TEST(NormSchedule, WidensAsItsRuleSays) {
  for (const NormInterval& interval : {NormInterval{.first = 2, .growth = 15, .over_steps = 243},
                                       NormInterval{.first = 1, .growth = 3, .over_steps = 7},
                                       NormInterval{.first = 9, .growth = 1, .over_steps = 4}}) {
    const NormSchedule schedule(interval);
    std::vector<bool> wanted;
    const std::uint64_t steps = 3 * interval.over_steps + 40;
    for (std::uint64_t update = 1, last = 0; update <= steps; ++update) {
      const double progress =
          std::min(1.0, static_cast<double>(update) / static_cast<double>(interval.over_steps));
      const auto distance = static_cast<std::uint64_t>(interval.first) +
                            static_cast<std::uint64_t>(1e-9 + static_cast<double>(interval.growth) * progress);
      wanted.push_back(update - last >= distance);
      if (wanted.back()) last = update;
    }
    for (std::uint64_t step = steps; step-- > 0;) EXPECT_EQ(schedule.scales(step), wanted[step]) << step;
  }
}

TEST(NormSchedule, RefusesWhatIsNoDistance) {
  EXPECT_THROW(NormSchedule({.first = 0}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = -1}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = 1, .over_steps = 0}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = 1, .over_steps = std::uint64_t{1} << 60}), ConfigError);
}

}  // namespace
}  // namespace headrace::test
