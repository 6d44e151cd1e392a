#include "headrace/pipeline/sources/archives/tar_reader.h"
#include "headrace/pipeline/sources/archives/byte_input.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

struct WrittenMember {
  std::string path;
  TarMember::Kind kind;
  Bytes bytes;
  bool operator==(const WrittenMember&) const = default;
};

// All members, their data read; every second time it is passed over and read by its offset instead.
std::vector<WrittenMember> read_members(const std::filesystem::path& path) {
  FileInput input(path);
  TarReader reader(input);
  const File file = File::open(path);
  std::vector<WrittenMember> members;
  while (std::optional<TarMember> member = reader.next()) {
    Bytes bytes(member->size);
    if (members.size() % 2 == 0) {
      reader.read(bytes);
    } else {
      file.read_exact(member->offset, bytes);
    }
    members.push_back({.path = member->path, .kind = member->kind, .bytes = bytes});
  }
  return members;
}

std::string error_of_tar(const std::filesystem::path& path) {
  try {
    read_members(path);
  } catch (const DataError& error) {
    EXPECT_NE(error.location().offset, DataLocation::kUnknown);
    return error.what();
  }
  return "no error";
}

constexpr auto kFile = TarMember::Kind::kFile;

TEST(TarReaderTest, ListsMembersWithTheirBytes) {
  TempFolder folder;
  const Bytes large(100'000, std::byte{7});
  const auto path = folder.write("a.tar", TarBuilder()
                                              .add_folder("dir/")
                                              .add("./dir/a", to_bytes("hello"))
                                              .add("empty", {})
                                              .add_link("link")
                                              .add("large", large)
                                              .finish());
  const std::vector<WrittenMember> expected = {{"dir/", TarMember::Kind::kFolder, {}},
                                               {"dir/a", kFile, to_bytes("hello")},
                                               {"empty", kFile, {}},
                                               {"link", TarMember::Kind::kSymbolicLink, {}},
                                               {"large", kFile, large}};
  EXPECT_EQ(read_members(path), expected);
}

TEST(TarReaderTest, UnderstandsExtendedHeaders) {
  TempFolder folder;
  const std::string name = std::string(150, 'x') + "/" + std::string(120, 'y') + ".jpg";
  const auto path = folder.write("a.tar", TarBuilder()
                                              .add_with_gnu_name(name, to_bytes("gnu"))
                                              .add_with_pax(name, to_bytes("pax"))
                                              .add("plain", to_bytes("after"))
                                              .finish());
  const std::vector<WrittenMember> expected = {
      {name, kFile, to_bytes("gnu")}, {name, kFile, to_bytes("pax")}, {"plain", kFile, to_bytes("after")}};
  EXPECT_EQ(read_members(path), expected);
}

TEST(TarReaderTest, UnderstandsThePrefixOfUstarAndBinarySizes) {
  TempFolder folder;
  Bytes bytes = TarBuilder().add("name", to_bytes("data")).finish();
  std::memcpy(bytes.data() + 345, "some/prefix", 11);
  const unsigned char size[12] = {0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4};
  std::memcpy(bytes.data() + 124, size, sizeof(size));
  fix_tar_checksum(bytes);
  const auto path = folder.write("a.tar", bytes);
  EXPECT_EQ(read_members(path), (std::vector<WrittenMember>{{"some/prefix/name", kFile, to_bytes("data")}}));
}

TEST(TarReaderTest, EveryTruncationIsAnErrorWithItsOffset) {
  TempFolder folder;
  const Bytes whole = TarBuilder()
                          .add("a", to_bytes("hello"))
                          .add_with_pax("b", to_bytes("world"))
                          .add("c", Bytes(600))
                          .unfinished();
  const auto path = folder.write("a.tar", whole);
  for (std::size_t size = whole.size() + 1; size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const DataError error = error_of<DataError>([&] { read_members(path); });
    EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
    EXPECT_LE(error.location().offset, size);
  }
}

TEST(TarReaderTest, EveryFlippedBitOfAHeaderIsFound) {
  TempFolder folder;
  const Bytes whole = TarBuilder().add("a/1.jpg", to_bytes("hello")).finish();
  const auto path = folder.write("a.tar", whole);
  for (std::size_t bit = 0; bit < 512 * 8; ++bit) {
    TempFolder::patch(path, bit / 8, whole[bit / 8] ^ static_cast<std::byte>(1U << bit % 8));
    try {
      // The terminators of the checksum itself may change.
      EXPECT_EQ(read_members(path), (std::vector<WrittenMember>{{"a/1.jpg", kFile, to_bytes("hello")}}))
          << "bit " << bit;
      EXPECT_TRUE(bit / 8 >= 148 && bit / 8 < 156) << "bit " << bit;
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().offset, 0U);
    }
    TempFolder::patch(path, bit / 8, whole[bit / 8]);
  }
}

TEST(TarReaderTest, NeverBelievesASize) {
  TempFolder folder;
  for (const char* size : {"77777777777", "00000010000", "zz", "-1"}) {
    Bytes bytes = TarBuilder().add("a", to_bytes("hello")).finish();
    std::memset(bytes.data() + 124, 0, 12);
    std::memcpy(bytes.data() + 124, size, std::strlen(size));
    fix_tar_checksum(bytes);
    EXPECT_THROW(read_members(folder.write("a.tar", bytes)), DataError) << size;
  }
  Bytes negative = TarBuilder().add("a", to_bytes("hello")).finish();
  std::memset(negative.data() + 124, 0xFF, 12);
  fix_tar_checksum(negative);
  EXPECT_THROW(read_members(folder.write("a.tar", negative)), DataError);
}

TEST(TarReaderTest, RefusesSparseMembersAndBrokenPax) {
  TempFolder folder;
  Bytes sparse = TarBuilder().add("a", to_bytes("hello")).finish();
  sparse[156] = std::byte{'S'};
  fix_tar_checksum(sparse);
  EXPECT_THAT(error_of_tar(folder.write("a.tar", sparse)), HasSubstr("holds a sparse member"));
  sparse[156] = std::byte{'M'};
  fix_tar_checksum(sparse);
  EXPECT_THAT(error_of_tar(folder.write("a.tar", sparse)), HasSubstr("a later volume"));
  for (const char* record : {"99 path=a\n", "0 path=a\n", "8 path=a\n", "11path=abc\n", "x", "6 abc\n",
                             "21 GNU.sparse.major=1\n", "9 size=x\n"}) {
    Bytes pax = TarBuilder().add("h", to_bytes(record)).add("a", to_bytes("hello")).finish();
    pax[156] = std::byte{'x'};
    fix_tar_checksum(pax);
    EXPECT_THROW(read_members(folder.write("a.tar", pax)), DataError) << record;
  }
}

// cat a.tar b.tar > both.tar: what follows an archive's end is read or refused, never dropped.
TEST(TarReaderTest, ReadsJoinedArchivesToTheEndOfTheLast) {
  TempFolder folder;
  Bytes joined = TarBuilder().add("a", to_bytes("first")).finish();
  joined.resize(10'240);  // a whole record, as tar pads it
  const Bytes second = TarBuilder().add("b", to_bytes("second")).add_with_pax("c", to_bytes("third")).finish();
  joined.insert(joined.end(), second.begin(), second.end());
  const std::vector<WrittenMember> expected = {
      {"a", kFile, to_bytes("first")}, {"b", kFile, to_bytes("second")}, {"c", kFile, to_bytes("third")}};
  EXPECT_EQ(read_members(folder.write("a.tar", joined)), expected);

  Bytes damaged = joined;
  damaged[10'240 + 3] ^= std::byte{1};
  EXPECT_THAT(error_of_tar(folder.write("a.tar", damaged)),
              HasSubstr("after the archive's end follows what is no second"));
  for (const std::size_t cut : {10'240 + 100, 10'240 + 512, 10'240 + 600}) {
    EXPECT_NE(error_of_tar(folder.write("a.tar", std::span(joined).first(cut))), "no error") << cut;
  }
  for (const std::size_t cut : {1024 + 512, 1024 + 513, 10'240}) {  // within the first one's zeros
    EXPECT_EQ(read_members(folder.write("a.tar", std::span(joined).first(cut))),
              (std::vector<WrittenMember>{{"a", kFile, to_bytes("first")}}));
  }
}

}  // namespace
}  // namespace headrace::test
