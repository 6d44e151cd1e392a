#include "headrace/devices/cuda/math/activation_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "headrace/tests/support/reference.h"

namespace headrace::cuda {
namespace {

TEST(ActivationMath, FollowsTheOracleOverAllMagnitudes) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
    for (double x = -100; x <= 100; x += 0.0371) {
      const auto at = static_cast<float>(x);
      EXPECT_NEAR(activated<float>(activation, at), test::activated(activation, at), 3e-7 * (1 + std::abs(x)))
          << x;
      constexpr double kStep = 1e-5;
      const double slope =
          (test::activated(activation, at + kStep) - test::activated(activation, at - kStep)) / (2 * kStep);
      if (activation != Activation::kRelu || std::abs(x) > kStep) {
        EXPECT_NEAR(activation_slope<float>(activation, at), slope, 2e-6) << x;
      }
    }
  }
}

template <typename T>
void expect_limits() {
  for (const Activation activation : {Activation::kGelu, Activation::kSilu}) {
    EXPECT_EQ(activated<T>(activation, 1e30F), 1e30F);
    EXPECT_EQ(activated<T>(activation, -1e30F), 0.0F);
    EXPECT_EQ(activated<T>(activation, HUGE_VALF), HUGE_VALF);
    EXPECT_EQ(activation_slope<T>(activation, 1e30F), 1.0F);
    EXPECT_EQ(activation_slope<T>(activation, -1e30F), 0.0F);
    EXPECT_TRUE(std::isnan(activated<T>(activation, NAN)));
    EXPECT_TRUE(std::isnan(activation_slope<T>(activation, NAN)));
  }
}

TEST(ActivationMath, FarFromZeroNothingOverflowsAndNanStays) {
  expect_limits<float>();
  expect_limits<BFloat16>();
}

double slope(Activation activation, double x) {
  if (activation == Activation::kSilu) {
    const double s = 1 / (1 + std::exp(-x));
    return s * (1 + x / (1 + std::exp(x)));
  }
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
}

// How many bf16 numbers lie between two, once they are rounded to bf16; numbers that a GPU may count as zeros on
// the way to a result are 0.
int steps_between(double a, double b) {
  const auto place = [](double x) {
    if (std::abs(x) < 1e-36) return 0;
    const int bits = nearest_bf16(static_cast<float>(x)).bits;
    return (bits & 0x8000) != 0 ? -(bits & 0x7FFF) : bits;
  };
  return std::abs(place(a) - place(b));
}

// A GPU's ex2 and rcp are two units of an f32's last place off, a hundredth of what the polynomial is.
TEST(ActivationMath, ForBf16AllNumbersAreWithinOneStepAndNinetyNineOfAHundredAreEqual) {
  for (const Activation activation : {Activation::kGelu, Activation::kSilu}) {
    int numbers = 0, values_off = 0, slopes_off = 0;
    for (unsigned bits = 0; bits <= 0xFFFF; ++bits) {
      const float x = widened({static_cast<std::uint16_t>(bits)});
      if (!std::isfinite(x)) continue;
      const int value = steps_between(activated<BFloat16>(activation, x), test::activated(activation, x));
      const int gradient = steps_between(activation_slope<BFloat16>(activation, x), slope(activation, x));
      EXPECT_LE(value, 1) << x;
      EXPECT_LE(gradient, 1) << x;
      if (std::abs(x) < 0x1p-8F || std::abs(x) > 16) continue;  // all but linear
      ++numbers;
      values_off += value;
      slopes_off += gradient;
    }
    EXPECT_LE(values_off * 100, numbers);
    EXPECT_LE(slopes_off * 100, numbers);
  }
}

// Between bf16 numbers too, as normalised values are.
TEST(ActivationMath, ForBf16RelativeErrorsAreBelowTwoHundredThousandths) {
  for (double x = -12; x <= 12; x += 0.00137) {
    const auto at = static_cast<float>(x);
    for (const Activation activation : {Activation::kGelu, Activation::kSilu}) {
      const double value = test::activated(activation, at);
      EXPECT_NEAR(activated<BFloat16>(activation, at), value, 2e-5 * std::abs(value)) << x;
      const double wanted = slope(activation, at);
      // Where the slope goes through 0 its parts cancel.
      EXPECT_NEAR(activation_slope<BFloat16>(activation, at), wanted,
                  2e-5 * std::max(std::abs(wanted), std::abs(value)))
          << x;
    }
  }
}

}  // namespace
}  // namespace headrace::cuda
