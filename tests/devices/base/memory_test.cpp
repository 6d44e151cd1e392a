#include "headrace/devices/base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>

namespace headrace {
namespace {

TEST(LargeMemory, IsAlignedAndAllThere) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{100'000},
                                  (std::size_t{2} << 20) - 1, std::size_t{2} << 20, (std::size_t{7} << 20) + 13}) {
    const LargeMemory memory = allocate_large(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 64, 0U);
    std::memset(memory.get(), 0x5a, bytes);
    EXPECT_EQ(std::to_integer<int>(memory.get()[bytes - 1]), 0x5a);
  }
}

TEST(LargeMemory, IsNullWhereThereIsNone) {
#if defined(HEADRACE_SANITIZED)
  GTEST_SKIP() << "the sanitizers' own allocators end the program";
#endif
  EXPECT_EQ(allocate_large(std::numeric_limits<std::size_t>::max() / 4), nullptr);
}

}  // namespace
}  // namespace headrace
