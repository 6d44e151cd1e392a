// Zip archives: the directory, the members, and images in them.
#include "headrace/pipeline/sources/archives/zip_directory.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"

namespace headrace::test {
namespace {

using ZipMember = ZipBuilder::Member;

struct Listed {
  std::string path;
  Bytes bytes;
  bool operator==(const Listed&) const = default;
};

std::vector<Listed> read_zip(const std::filesystem::path& path) {
  const File file = File::open(path);
  const ReadAt read_at = [&](std::uint64_t offset, std::span<std::byte> into) { file.read_exact(offset, into); };
  std::vector<Listed> members;
  for (const ZipFile& one : list_zip(path.string(), file.size(), read_at)) {
    if (one.path.ends_with('/')) continue;
    Bytes bytes(one.place.size);
    if (one.unreadable == nullptr) read_stored(one.place, path.string(), read_at, bytes);
    members.push_back(
        {.path = one.unreadable == nullptr ? one.path : one.path + " " + one.unreadable, .bytes = bytes});
  }
  return members;
}

std::string error_of_zip(const std::filesystem::path& path) {
  try {
    read_zip(path);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().source, path.string());
    return error.what();
  }
  return "no error";
}

const Bytes kText = to_bytes(std::string(3000, 'a') + "bcd");

std::vector<Listed> expected() { return {{"a/1", kText}, {"a/2", kText}, {"empty", {}}, {"none", {}}}; }

ZipBuilder make_zip(ZipMember like = {}) {
  ZipBuilder zip;
  zip.add("a/", {});
  like.bytes = kText;
  like.path = "a/1";
  zip.add(like);
  like.path = "a/2";
  like.deflated = true;
  zip.add(like);
  zip.add("empty", {}).add("none", {}, true);
  return zip;
}

TEST(ZipTest, ReadsStoredAndDeflatedMembers) {
  TempFolder folder;
  EXPECT_EQ(read_zip(folder.write("a.zip", make_zip().finish())), expected());
}

TEST(ZipTest, ReadsEveryVariant) {
  TempFolder folder;
  EXPECT_EQ(read_zip(folder.write("a.zip", make_zip({.has_descriptor = true}).finish())), expected());
  EXPECT_EQ(read_zip(folder.write("a.zip", make_zip({.is_64 = true}).finish())), expected());
  EXPECT_EQ(read_zip(folder.write("a.zip", make_zip().end_64().finish())), expected());
  EXPECT_EQ(read_zip(folder.write("a.zip", make_zip().comment("PK\x05\x06 is how it ends").finish())), expected());
  EXPECT_EQ(read_zip(folder.write("a.zip", make_zip().comment(std::string(65535, 'c')).finish())), expected());
  for (const bool is_64 : {false, true}) {
    ZipBuilder zip = make_zip().put_before(to_bytes("#!/bin/sh\n"));
    if (is_64) zip.end_64();
    EXPECT_EQ(read_zip(folder.write("a.zip", zip.finish())), expected());
  }
  EXPECT_TRUE(read_zip(folder.write("a.zip", ZipBuilder().finish())).empty());
}

TEST(ZipTest, KnowsMoreMembersThan16BitsCount) {
  TempFolder folder;
  ZipBuilder zip;
  for (int i = 0; i < 70'000; ++i) zip.add(std::to_string(i), {});
  EXPECT_EQ(read_zip(folder.write("a.zip", zip.finish())).size(), 70'000U)
      << "a count modulo 2^16, as old writers have it";
  EXPECT_EQ(read_zip(folder.write("a.zip", zip.end_64().finish())).size(), 70'000U);
}

TEST(ZipTest, NamesAreUtf8OrOfCodePage437) {
  TempFolder folder;
  const auto name_of = [&](const ZipMember& member) {
    return read_zip(folder.write("a.zip", ZipBuilder().add(member).finish())).at(0).path;
  };
  EXPECT_EQ(name_of({.path = "K\xC3\xA4tzchen", .flags = 1 << 11}), "Kätzchen");
  EXPECT_EQ(name_of({.path = "K\xC3\xA4tzchen"}), "Kätzchen") << "macOS leaves the flag out";
  EXPECT_EQ(name_of({.path = "K\x84tzchen \x9B\xFE"}), "Kätzchen ¢■");
  EXPECT_EQ(name_of({.path = "./a/b"}), "a/b");
  EXPECT_EQ(name_of({.path = "a\\b", .system = 0}), "a/b");
  EXPECT_EQ(name_of({.path = "a\\b"}), "a\\b") << "a name on Unix";
}

TEST(ZipTest, SaysWhatCannotBeRead) {
  TempFolder folder;
  const auto why = [&](const ZipMember& member) {
    return read_zip(folder.write("a.zip", ZipBuilder().add(member).finish())).at(0).path;
  };
  EXPECT_EQ(why({.path = "x", .flags = 1}), "x is encrypted");
  EXPECT_EQ(why({.path = "x", .method = 12}), "x is packed in another way than by deflate");
  EXPECT_EQ(why({.path = "x", .attributes = 0xA1FF0000U}), "x is a link to another file");
}

TEST(ZipTest, EveryTruncationIsAnError) {
  TempFolder folder;
  const Bytes whole = make_zip().finish();
  const auto path = folder.write("a.zip", whole);
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    EXPECT_THAT(error_of_zip(path), HasSubstr("it was cut off")) << size;
  }
  folder.write("a.zip", std::span(whole).subspan(100));  // its front is missing
  EXPECT_NE(error_of_zip(path), "no error");
}

// A flipped bit changes a name, or it is found: never other bytes.
TEST(ZipTest, NoFlippedBitGivesOtherBytes) {
  TempFolder folder;
  const Bytes whole = make_zip().finish();
  const auto path = folder.write("a.zip", whole);
  std::size_t found = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8;
       bit += bit < 300 * 8 || bit > (whole.size() - 300) * 8 ? 1 : 61) {
    TempFolder::patch(path, bit / 8, whole[bit / 8] ^ static_cast<std::byte>(1U << bit % 8));
    try {
      for (const Listed& one : read_zip(path)) {
        const bool is_unread = one.path.find(" is ") != std::string::npos;
        EXPECT_TRUE(is_unread || one.bytes == kText || one.bytes.empty()) << bit;
      }
    } catch (const DataError&) {
      ++found;
    }
    TempFolder::patch(path, bit / 8, whole[bit / 8]);
  }
  EXPECT_GT(found, 1000U);
}

TEST(ZipTest, NeverBelievesASize) {
  TempFolder folder;
  const Bytes whole = ZipBuilder().add("x", kText, true).finish();
  const std::size_t entry = whole.size() - 22 - 47;
  for (const std::size_t at : {20, 24, 42}) {
    for (const int value : {0x7F, 0xFE, 0xFF}) {
      Bytes huge = whole;
      std::fill_n(huge.begin() + static_cast<std::ptrdiff_t>(entry + at), 4, static_cast<std::byte>(value));
      EXPECT_NE(error_of_zip(folder.write("a.zip", huge)), "no error") << at << ' ' << value;
    }
  }
  Bytes parts = whole;
  parts[parts.size() - 22 + 4] = std::byte{1};
  EXPECT_THAT(error_of_zip(folder.write("a.zip", parts)), HasSubstr("the last part of a zip archive in several"));
  Bytes other_count = whole;
  other_count[other_count.size() - 22 + 10] = std::byte{2};
  EXPECT_THAT(error_of_zip(folder.write("a.zip", other_count)),
              HasSubstr("its directory holds 1 members and says 2"));
}

// Class folders.
struct ZipMaker {
  static constexpr std::uint64_t kRecords = kTrainImages;
  static constexpr bool kResident = false;

  ZipMaker() { write({}); }
  const TempFolder& folder() const { return folder_; }
  std::filesystem::path root() const { return folder_ / "a.zip"; }
  std::vector<std::filesystem::path> files() const { return {root()}; }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return image_archive(path); }
  void change() { write({std::byte{1}}); }

 private:
  void write(const Bytes& extra) {
    ZipBuilder zip;
    zip.add("README", to_bytes("not an image"));
    bool deflated = false;
    for (auto [path, bytes] : make_image_files()) {
      bytes.insert(bytes.end(), extra.begin(), extra.end());
      zip.add(path, bytes, deflated = !deflated);
    }
    folder_.write("a.zip", zip.finish());
  }

  TempFolder folder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Zip, SourceSuite, ZipMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Zip, FileSourceSuite, ZipMaker);

TEST(ZipImagesTest, GivesWhatATarOfTheSameFilesGives) {
  const ZipMaker maker;
  const auto tar = maker.folder().write("a.tar", pack_images(make_image_files()).finish());
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const SourcePtr zipped = open_source(maker.root(), split), packed = open_source(tar, split);
    EXPECT_EQ(read_all(*zipped), read_all(*packed));
    EXPECT_EQ(zipped->info().classes, packed->info().classes);
    EXPECT_EQ(zipped->describe(0), packed->describe(0));
  }
}

TEST(ZipImagesTest, IsOneStream) {
  const ZipMaker maker;
  expect_one_stream(Dataset::from(maker.open()).shuffle().decode().map(center_crop(8)).batch({.global_batch = 5}));
}

TEST(ZipImagesTest, ABadChecksumIsABadRecord) {
  const ZipMaker maker;
  const SourcePtr source = maker.open();
  const auto before = read_all(*source);
  const File file = File::open(maker.root());
  const auto list = list_zip("", file.size(), [&](auto offset, auto into) { file.read_exact(offset, into); });
  const auto damaged = std::ranges::find(list, source->describe(3), &ZipFile::path);
  std::vector<std::byte> byte(1);
  const std::uint64_t at = damaged->place.offset + damaged->place.packed_size;
  file.read_exact(at, byte);
  TempFolder::patch(maker.root(), at, byte[0] ^ std::byte{4});
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < source->info().records; ++i) {
    try {
      EXPECT_EQ(read_record(*source, i, scratch), before[i]);
      EXPECT_NE(i, 3U);
    } catch (const DataError& error) {
      EXPECT_EQ(i, 3U);
      EXPECT_EQ(error.location().record, 3U);
      EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
      EXPECT_THAT(error.what(), HasSubstr(source->describe(3)));
    }
  }
}

TEST(ZipImagesTest, RefusesEncryptedImagesAndSaysSo) {
  TempFolder folder;
  const auto path = folder.write(
      "a.zip", ZipBuilder().add({.path = "c/1.jpg", .bytes = kText, .flags = 1}).add("c/2.jpg", kText).finish());
  const DataError error = error_of<DataError>([&] { open_source(path, Split::kTrain); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("'c/1.jpg' is encrypted"));
}

TEST(ZipImagesTest, SeesTheContentInItsFingerprint) {
  TempFolder folder;
  const auto print = [&](std::string_view text) {
    return image_archive(
               folder.write("a.zip", ZipBuilder().add("c/1.jpg", to_bytes(text)).add("d/1.jpg", {}).finish()))
        ->info()
        .fingerprint;
  };
  EXPECT_NE(print("abc"), print("abd"));
}

TEST(ZipImagesTest, ReadsWebDatasetNaming) {
  TempFolder folder;
  ZipBuilder zip;
  for (int i = 0; i < 4; ++i) {
    const std::string key = "part/" + std::to_string(i);
    zip.add(key + ".jpg", encode_jpeg(make_picture(8, 9, 3, i)), i % 2 == 0)
        .add(key + ".cls", to_bytes(std::to_string(i * 3)));
  }
  const auto path = folder.write("shards/0.zip", zip.finish());
  for (const auto& place : {path, folder / "shards"}) {
    const SourcePtr source = open_source(place, Split::kTrain);
    ASSERT_EQ(source->info().records, 4U);
    std::vector<std::byte> scratch;
    std::int64_t label = 0;
    const RecordView view = source->read(2, scratch);
    std::memcpy(&label, view.fields[1].data(), sizeof label);
    EXPECT_EQ(label, 6);
    EXPECT_EQ(to_bytes(view.fields[0]), encode_jpeg(make_picture(8, 9, 3, 2)));
  }
}

}  // namespace
}  // namespace headrace::test
