#include "headrace/devices/base/byte_slabs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace headrace {
namespace {

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
}  // namespace headrace
