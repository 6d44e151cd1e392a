#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/bf16.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(DType, SizesAndNamesAreNumPys) {
  EXPECT_EQ(size_of(DType::kU8), 1U);
  EXPECT_EQ(size_of(DType::kF16), 2U);
  EXPECT_EQ(size_of(DType::kBF16), 2U);
  EXPECT_EQ(size_of(DType::kI32), 4U);
  EXPECT_EQ(size_of(DType::kF32), 4U);
  EXPECT_EQ(size_of(DType::kI64), 8U);
  EXPECT_STREQ(to_string(DType::kU8), "uint8");
  EXPECT_STREQ(to_string(DType::kI32), "int32");
  EXPECT_STREQ(to_string(DType::kI64), "int64");
  EXPECT_STREQ(to_string(DType::kF16), "float16");
  EXPECT_STREQ(to_string(DType::kBF16), "bfloat16");
  EXPECT_STREQ(to_string(DType::kF32), "float32");
}

TEST(DType, OfATypeHasItsSize) {
  EXPECT_EQ(size_of(dtype_of<std::uint8_t>()), sizeof(std::uint8_t));
  EXPECT_EQ(size_of(dtype_of<std::int32_t>()), sizeof(std::int32_t));
  EXPECT_EQ(size_of(dtype_of<std::int64_t>()), sizeof(std::int64_t));
  EXPECT_EQ(dtype_of<float>(), DType::kF32);
}

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
    EXPECT_EQ(static_cast<double>(widened(nearest_bf16(value))), rounded_to_bf16(value)) << value;
  }
  EXPECT_EQ(widened(nearest_bf16(3.4e38F)), std::numeric_limits<float>::infinity());
}

TEST(BFloat16, ANanWhosePayloadIsInTheLowerHalfStaysOne) {
  EXPECT_TRUE(std::isnan(widened(nearest_bf16(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace
}  // namespace headrace::test
