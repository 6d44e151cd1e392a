#include <bit>

#include "headrace/pipeline/operations/machinery/beta.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// P(X <= x) of Beta(a, a) by the trapezium rule in the angle t of x = sin^2 t, where nothing is infinite for a >=
// 1/2; below, the tails make it slow and only moments are compared.
double beta_distribution(double a, double x) {
  const auto integral = [&](double to) {
    constexpr int kSteps = 4000;
    double sum = 0;
    for (int i = 0; i <= kSteps; ++i) {
      const double t = to * i / kSteps;
      const double value = std::pow(std::sin(t) * std::cos(t), 2 * a - 1);
      sum += (i == 0 || i == kSteps ? 0.5 : 1.0) * value;
    }
    return sum * to / kSteps;
  };
  return integral(std::asin(std::sqrt(x))) / integral(std::acos(0.0));
}

std::vector<double> sample(double alpha, std::size_t count) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    Philox random({.seed = 5, .record = i});
    values.push_back(draw_beta(alpha, random));
  }
  return values;
}

TEST(Beta, HasItsMomentsForSmallAndLargeAlpha) {
  for (const double alpha : {0.05, 0.2, 0.5, 0.51, 1.0, 2.0, 8.0, 300.0}) {
    constexpr std::size_t kCount = 40'000;
    double mean = 0, square = 0, fourth = 0;
    for (const double value : sample(alpha, kCount)) {
      ASSERT_GE(value, 0);
      ASSERT_LE(value, 1);
      const double off = value - 0.5;
      mean += value / kCount;
      square += off * off / kCount;
      fourth += off * off * off * off / kCount;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    const double kurtosis = 3 - 6 / (2 * alpha + 3);
    EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(variance / kCount)) << alpha;
    EXPECT_NEAR(square, variance, 0.03 * variance) << alpha;
    EXPECT_NEAR(fourth, kurtosis * variance * variance, 0.06 * kurtosis * variance * variance) << alpha;
  }
}

TEST(Beta, FollowsItsDistribution) {
  for (const double alpha : {0.5, 0.7, 1.0, 1.5, 4.0}) {
    constexpr std::size_t kCount = 20'000;
    std::vector<double> values = sample(alpha, kCount);
    std::ranges::sort(values);
    double furthest = 0;  // Kolmogorov's distance
    for (std::size_t i = 0; i < kCount; i += 200) {
      furthest =
          std::max(furthest, std::abs(beta_distribution(alpha, values[i]) - static_cast<double>(i) / kCount));
    }
    EXPECT_LT(furthest, 1.7 / std::sqrt(static_cast<double>(kCount))) << alpha;
  }
}

TEST(Beta, StandsTheSmallestAlpha) {
  for (const double value : sample(1e-3, 2000)) EXPECT_TRUE(value >= 0 && value <= 1);
}

// The bits must not change with compiler, library or processor.
TEST(Beta, IsTheSameOnEveryMachine) {
  std::uint64_t sum = 0;
  for (const double alpha : {0.1, 0.4, 1.0, 3.0}) {
    for (const double value : sample(alpha, 1000)) sum = sum * 31 + std::bit_cast<std::uint64_t>(value);
  }
  EXPECT_EQ(sum, 3154567465917215407U);
}

}  // namespace
}  // namespace headrace::test
