#include "headrace/devices/base/sizes.h"
#include "headrace/devices/base/memory.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(CheckedSize, MultipliesWhatFits) {
  EXPECT_EQ(checked_product({}), 1U);
  EXPECT_EQ(checked_product({3, 4, 5}), 60U);
  EXPECT_EQ(checked_product({std::uint64_t{1} << 31, std::uint64_t{1} << 31}), std::uint64_t{1} << 62);
  EXPECT_EQ(checked_product({kMaxSize, 1}), kMaxSize);
  EXPECT_EQ(checked_product({kMaxSize, 0}), 0U);
}

TEST(CheckedSize, GivesNothingWhereAProductDoesNotFit) {
  EXPECT_EQ(checked_product({std::uint64_t{1} << 32, std::uint64_t{1} << 31}), std::nullopt);
  EXPECT_EQ(checked_product({std::uint64_t{1} << 61, 12288}), std::nullopt) << "wraps to 0 in 64 bits";
  EXPECT_EQ(checked_product({kMaxSize + 1}), std::nullopt);
  EXPECT_EQ(checked_product({0, std::uint64_t{1} << 40, std::uint64_t{1} << 40}), std::nullopt);
}

TEST(CheckedSize, AddsWhatFits) {
  EXPECT_EQ(checked_sum({}), 0U);
  EXPECT_EQ(checked_sum({kMaxSize - 2, 1, 1}), kMaxSize);
  EXPECT_EQ(checked_sum({kMaxSize, 1}), std::nullopt);
  EXPECT_EQ(checked_sum({~std::uint64_t{0}, 2}), std::nullopt);
}

TEST(MachineMemory, IsThereAndNotAbsurd) {
  EXPECT_GT(machine_memory_bytes(), std::uint64_t{64} << 20);
  EXPECT_LT(machine_memory_bytes(), std::uint64_t{1} << 48);
}

}  // namespace
}  // namespace headrace::test
