#include "headrace/devices/base/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headrace/tests/support/reference_elementwise.h"

namespace headrace {
namespace {

TEST(BFloat16, EveryValueSurvivesTheWayThereAndBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    const float wide = widened(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(widened(nearest_bf16(wide)))) << bits;
    } else {
      EXPECT_EQ(nearest_bf16(wide).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  for (const float value : {1.0F, 1.00390625F, 1.01171875F, 1.0039063F, 0.1F, -3.14159F, 65504.0F, 1e-20F}) {
    EXPECT_EQ(static_cast<double>(widened(nearest_bf16(value))), test::rounded_to_bf16(value)) << value;
  }
  EXPECT_EQ(widened(nearest_bf16(3.4e38F)), std::numeric_limits<float>::infinity());
}

TEST(BFloat16, ANanWhosePayloadIsInTheLowerHalfStaysOne) {
  EXPECT_TRUE(std::isnan(widened(nearest_bf16(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace
}  // namespace headrace
