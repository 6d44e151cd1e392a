#include "headrace/pipeline/sources/byte_input.h"

#include <gtest/gtest.h>

#include <random>

#include "headrace/devices/base/error.h"
#include "headrace/tests/pipeline/sources/packing.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {
namespace {

Bytes half_random(std::size_t size) {
  std::mt19937 random(5);
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i % 64 < 32 ? random() : i / 64);
  return bytes;
}

Bytes read_to_end(ByteInput& input, std::size_t step) {
  Bytes all, piece(step);
  while (const std::size_t count = input.read(piece))
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
  return all;
}

class ByteInputTest : public ::testing::TestWithParam<Packing> {
 protected:
  TempFolder folder_;
};

TEST_P(ByteInputTest, GivesTheBytesInAnySteps) {
  const Bytes plain = half_random(300'000);
  const auto path = folder_.write("data", pack(plain, GetParam()));
  EXPECT_EQ(packing_of(path), GetParam());
  for (const std::size_t step : {1, 511, 65536, 400'000}) {
    const auto input = open_input(path);
    EXPECT_EQ(read_to_end(*input, step), plain);
    EXPECT_EQ(input->position(), plain.size());
  }
}

TEST_P(ByteInputTest, SkipsAndBoundsWhatIsLeft) {
  const Bytes plain = half_random(300'000);
  const auto input = open_input(folder_.write("data", pack(plain, GetParam())));
  std::byte byte{};
  for (const std::size_t count : {0, 1, 70'000, 5, 120'000}) {
    input->skip(count);
    EXPECT_GE(input->most_left(), plain.size() - input->position());
    const std::size_t at = input->position();
    input->read_exact(std::span(&byte, 1), "the data");
    EXPECT_EQ(byte, plain[at]);
  }
  EXPECT_THROW(input->skip(200'000), DataError);
}

TEST_P(ByteInputTest, NoTruncationGivesTheWholeOrWrongBytes) {
  const Bytes plain = half_random(900);
  const Bytes packed = pack(plain, GetParam());
  const auto path = folder_.write("data", packed);
  for (std::size_t size = packed.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    try {
      const auto input = open_input(path);
      const Bytes read = read_to_end(*input, 100);
      EXPECT_TRUE(GetParam() == Packing::kPlain || size < 4) << "unnoticed at " << size;
      EXPECT_TRUE(std::equal(read.begin(), read.end(), packed.begin()));
      EXPECT_EQ(read.size(), size);
    } catch (const DataError& error) {
      EXPECT_NE(GetParam(), Packing::kPlain);
      EXPECT_EQ(error.location().source, path.string());
      EXPECT_LE(error.location().offset, size);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ByteInputTest, ::testing::Values(Packing::kPlain, Packing::kGzip, Packing::kZstd),
                         packing_name);

TEST(GzipInputTest, ReadsJoinedMembers) {
  TempFolder folder;
  Bytes joined = gzip(to_bytes("hello "));
  for (const char* more : {"", "world"}) {
    const Bytes member = gzip(to_bytes(more));
    joined.insert(joined.end(), member.begin(), member.end());
  }
  const auto input = open_input(folder.write("data", joined));
  EXPECT_EQ(read_to_end(*input, 4), to_bytes("hello world"));
}

}  // namespace
}  // namespace headrace::test
