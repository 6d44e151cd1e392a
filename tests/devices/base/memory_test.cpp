#include "headrace/devices/base/memory.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
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

constexpr std::size_t kSlabBytes = 4096;

TEST(ByteSlabsTest, PiecesAreAlignedApartAndStayWhereTheyAre) {
  ByteSlabs slabs(kSlabBytes);
  std::vector<std::span<std::byte>> pieces;
  // Small ones within slabs, at the border between both kinds, and larger than a slab.
  for (int round = 0; round < 20; ++round) {
    for (const std::size_t size : {1U, 15U, 16U, 17U, 511U, 512U, 513U, 4096U, 10000U}) {
      const std::span<std::byte> piece = slabs.allocate(size);
      ASSERT_EQ(piece.size(), size);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data()) % ByteSlabs::kAlignment, 0U);
      std::ranges::fill(piece, static_cast<std::byte>(pieces.size()));
      pieces.push_back(piece);
    }
  }
  const ByteSlabs moved = std::move(slabs);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_TRUE(std::ranges::all_of(pieces[i], [i](std::byte byte) { return byte == static_cast<std::byte>(i); }))
        << "piece " << i << " of " << pieces[i].size() << " bytes was written over";
  }
}

TEST(ByteSlabsTest, AnEmptyPieceTakesNothing) {
  ByteSlabs slabs(kSlabBytes);
  EXPECT_EQ(slabs.allocate(0).size(), 0U);
  const std::byte* first = slabs.allocate(16).data();
  EXPECT_EQ(slabs.allocate(0).size(), 0U);
  EXPECT_EQ(slabs.allocate(16).data(), first + 16);
}

}  // namespace
}  // namespace headrace::test
