#include "headrace/devices/cuda/math/activation_math.h"

#include <gtest/gtest.h>

#include "headrace/tests/support/reference_elementwise.h"

namespace headrace::cuda {
namespace {

TEST(ActivationMath, FollowsTheOracleOverAllMagnitudes) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
    for (double x = -100; x <= 100; x += 0.0371) {
      const auto at = static_cast<float>(x);
      EXPECT_NEAR(activated(activation, at), test::activated(activation, at), 3e-7 * (1 + std::abs(x))) << x;
      constexpr double kStep = 1e-5;
      const double slope =
          (test::activated(activation, at + kStep) - test::activated(activation, at - kStep)) / (2 * kStep);
      if (activation != Activation::kRelu || std::abs(x) > kStep) {
        EXPECT_NEAR(activation_slope(activation, at), slope, 2e-6) << x;
      }
    }
  }
}

TEST(ActivationMath, FarFromZeroNothingOverflows) {
  for (const Activation activation : {Activation::kGelu, Activation::kSilu}) {
    EXPECT_EQ(activated(activation, 1e30F), 1e30F);
    EXPECT_EQ(activated(activation, -1e30F), 0.0F);
    EXPECT_EQ(activation_slope(activation, 1e30F), 1.0F);
    EXPECT_EQ(activation_slope(activation, -1e30F), 0.0F);
  }
}

}  // namespace
}  // namespace headrace::cuda
