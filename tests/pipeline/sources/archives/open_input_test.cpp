#include "headrace/pipeline/sources/archives/open_input.h"
#include "headrace/tests/pipeline/sources/packing.h"

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
    EXPECT_GE(input->max_left(), plain.size() - input->position());
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

// The bytes that this process has read so far; std::nullopt where the system does not count them.
std::optional<std::uint64_t> bytes_read() {
  std::ifstream counts("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  if (!(counts >> name >> bytes) || name != "rchar:") return std::nullopt;
  return bytes;
}

TEST(PlainInputTest, DoesNotReadWhatIsSkipped) {
  TempFolder folder;
  constexpr std::size_t kMembers = 40, kMember = 100'000, kHeader = 512;
  const auto path = folder.write("data", Bytes(kMembers * kMember));
  const auto before = bytes_read();
  if (!before) GTEST_SKIP() << "the system does not count what a process reads";
  const auto input = open_input(path);
  Bytes header(kHeader);
  for (std::size_t i = 0; i < kMembers; ++i) {
    input->read_exact(header, "a header");
    input->skip(kMember - kHeader);
  }
  EXPECT_LT(*bytes_read() - *before, kMembers * kMember / 10);
}

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

std::string error_of_input(const std::filesystem::path& path, std::uint64_t window_limit = kWindowLimit) {
  try {
    read_to_end(*open_input(path, window_limit), 1000);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().source, path.string());
    return error.what();
  }
  return "no error";
}

TEST(GzipInputTest, PassesOverZerosAfterAMember) {
  TempFolder folder;
  Bytes padded = gzip(to_bytes("hello "));
  padded.resize(padded.size() + 100'000);
  const auto path = folder.write("data", padded);
  EXPECT_EQ(read_to_end(*open_input(path), 4), to_bytes("hello "));
  const Bytes member = gzip(to_bytes("world"));
  padded.insert(padded.end(), member.begin(), member.end());
  folder.write("data", padded);
  EXPECT_EQ(read_to_end(*open_input(path), 4), to_bytes("hello world"));
  padded.push_back(std::byte{0});
  padded.push_back(std::byte{'x'});
  folder.write("data", padded);
  EXPECT_THAT(error_of_input(path), HasSubstr("damaged gzip data"));
}

TEST(ZlibInputTest, IsReadWhereItIsAskedFor) {
  TempFolder folder;
  const Bytes plain = half_random(200'000);
  const Bytes packed = zlib(plain);
  const auto path = folder.write("data", packed);
  EXPECT_EQ(packing_of(path), Packing::kPlain);
  EXPECT_EQ(read_to_end(*open_input(path, Packing::kZlib), 1000), plain);
  std::filesystem::resize_file(path, packed.size() - 1);
  EXPECT_THAT(error_of<DataError>([&] { read_to_end(*open_input(path, Packing::kZlib), 1000); }).what(),
              HasSubstr("damaged zlib data: it ends early"));
}

TEST(ZstdInputTest, ReadsManyFramesAndSkippableOnes) {
  TempFolder folder;
  const Bytes plain = half_random(300'000);
  const Bytes packed = pzstd(plain, 70'000);
  const auto path = folder.write("data", packed);
  EXPECT_EQ(packing_of(path), Packing::kZstd);
  for (const std::size_t step : {7, 65536}) EXPECT_EQ(read_to_end(*open_input(path), step), plain);
  // A cut at the end of a frame is the one that cannot be seen.
  std::filesystem::resize_file(path, packed.size() - 1);
  EXPECT_THAT(error_of_input(path), HasSubstr("it ends early"));
}

TEST(ZstdInputTest, AllowsAWindowWithinTheBudget) {
  TempFolder folder;
  const Bytes plain = half_random(200'000);
  const auto path = folder.write("data", zstd_with_window(plain, 31));
  EXPECT_EQ(read_to_end(*open_input(path), 5000), plain);
  EXPECT_THAT(error_of_input(path, std::uint64_t{1} << 30), HasSubstr("a zstd window of more than 1024 MiB"));
  EXPECT_THAT(error_of_input(path, 1000),
              HasSubstr("more than 128 MiB of memory (zstd --long writes such files) (unpack it "
                        "first: zstd -d --long=31, or raise ArchiveOptions::memory_limit)"));
  folder.write("data", zstd_with_window(plain, 27));
  EXPECT_EQ(read_to_end(*open_input(path, 1000), 5000), plain) << "zstd's own limit is always allowed";
}

TEST(OpenInputTest, NamesWhatIsPackedInAnotherWay) {
  TempFolder folder;
  const std::map<std::string, std::string> starts = {
      {std::string("\xFD"
                   "7zXZ\0\0",
                   7),
       "is packed with xz, which is not read (not read are what xz, bzip2"},
      {"BZh91AY&SYxxxx", "is packed with bzip2, which is not read"},
      {"7z\xBC\xAF\x27\x1C__", "is a 7-Zip archive, which is not read"},
      {"Rar!\x1A\x07\x01_", "is a RAR archive, which is not read"},
      {"\x04\x22\x4D\x18__", "is packed with lz4, which is not read"}};
  for (const auto& [start, words] : starts) {
    const std::string error = error_of_input(folder.write("data", start));
    EXPECT_THAT(error, HasSubstr(words));
    EXPECT_THAT(error, HasSubstr("xz -dc FILE.tar.xz | zstd -o FILE.tar.zst"));
    EXPECT_THAT(error, HasSubstr("; Headrace reads: folders of images by class"));
  }
}

}  // namespace
}  // namespace headrace::test
