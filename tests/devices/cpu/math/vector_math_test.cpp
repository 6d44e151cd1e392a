// The stated errors of the branch-free functions, over floats from all of their range.
#include "headrace/devices/cpu/math/vector_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "headrace/tests/support/reference.h"

namespace headrace::test {
namespace {

// Calls function(x) for about a million floats between `low` and `high`, evenly spaced.
template <typename Function>
void sweep(float low, float high, const Function& function) {
  constexpr int kSteps = 1 << 20;
  for (int i = 0; i <= kSteps; ++i) function(low + (high - low) * (static_cast<float>(i) / kSteps));
}

TEST(VectorMath, ExpErrorIsAsStated) {
  double worst = 0;
  sweep(-87, 88, [&](float x) {
    const double truth = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(fast_exp(x)) / truth - 1));
  });
  EXPECT_LT(worst, 2e-7);
}

TEST(VectorMath, ExpAtTheEnds) {
  EXPECT_EQ(fast_exp(0), 1);
  EXPECT_EQ(fast_exp(-std::numeric_limits<float>::infinity()), fast_exp(-87));
  EXPECT_EQ(fast_exp(std::numeric_limits<float>::infinity()), fast_exp(88));
  EXPECT_TRUE(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, NormalErrorIsAsStated) {
  double density = 0, distribution = 0;
  sweep(-14, 14, [&](float x) {
    const auto exact = static_cast<double>(x);
    const Normal normal = fast_normal(x);
    distribution = std::max(distribution, std::abs(static_cast<double>(normal.distribution) -
                                                   0.5 * std::erfc(-exact / std::sqrt(2.0))));
    if (std::abs(x) < 6) {
      const double truth = std::exp(-0.5 * exact * exact) / std::sqrt(2 * std::acos(-1.0));
      density = std::max(density, std::abs(static_cast<double>(normal.density) / truth - 1));
    }
  });
  EXPECT_LT(distribution, 2.5e-7);
  EXPECT_LT(density, 5e-6);
}

TEST(VectorMath, Bf16IsTheNearestWithTiesToEven) {
  const auto expect_nearest = [](float x) {
    ASSERT_EQ(static_cast<double>(round_to_bf16(x)), rounded_to_bf16(static_cast<double>(x))) << x;
  };
  sweep(-3, 3, expect_nearest);
  sweep(-1e30F, 1e30F, expect_nearest);
  for (const std::uint32_t bits :
       {0x3F808000U, 0x3F818000U, 0x3F807FFFU, 0x3F808001U, 0xBF808000U, 0U, 0x80000000U}) {
    expect_nearest(std::bit_cast<float>(bits));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round_to_bf16(kInfinity), kInfinity);
  EXPECT_EQ(round_to_bf16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_TRUE(std::isnan(round_to_bf16(std::bit_cast<float>(0x7F800001U))));
}

}  // namespace
}  // namespace headrace::test
