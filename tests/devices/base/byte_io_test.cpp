#include "headrace/devices/base/byte_io.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// The check value of the algorithm's catalogue, and RFC 3720's examples.
TEST(Crc32cTest, HasTheKnownValues) {
  for (const auto function : {&crc32c, &crc32c_by_table}) {
    EXPECT_EQ(function(to_bytes("123456789")), 0xE3069283U);
    EXPECT_EQ(function(Bytes(32)), 0x8A9136AAU);
    EXPECT_EQ(function(Bytes(32, std::byte{0xFF})), 0x62A8AB43U);
    EXPECT_EQ(function({}), 0U);
  }
}

TEST(Crc32cTest, IsTheSameByInstructionAndByTable) {
  Philox random({.seed = 1});
  Bytes bytes(300);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next_u32());
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t size = 0; size < 40; ++size) {
      const auto piece = std::span<const std::byte>(bytes).subspan(first, size);
      ASSERT_EQ(crc32c(piece), crc32c_by_table(piece));
    }
  }
  EXPECT_EQ(crc32c(bytes), crc32c_by_table(bytes));
}

}  // namespace
}  // namespace headrace::test
