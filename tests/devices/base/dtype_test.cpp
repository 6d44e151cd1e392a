#include "headrace/devices/base/dtype.h"

#include <gtest/gtest.h>

namespace headrace {
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

}  // namespace
}  // namespace headrace
