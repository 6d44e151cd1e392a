#include <gmock/gmock.h>

#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FolderMaker {
  static constexpr std::uint64_t kRecords = kTrainImages;
  static constexpr bool kResident = false;

  FolderMaker() {
    for (const auto& [name, bytes] : make_image_files()) folder_.write(name, bytes);
    folder_.write("README", "not an image");
  }
  const TempFolder& folder() const { return folder_; }
  std::filesystem::path root() const { return folder_.path(); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& [name, bytes] : make_image_files()) {
      if (name.starts_with("train")) files.push_back(folder_ / name);
    }
    return files;
  }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return image_folder(path, Split::kTrain); }
  void change() { folder_.write("train/dog/2.jpg", "of another size"); }

 private:
  TempFolder folder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Folder, SourceSuite, FolderMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Folder, FileSourceSuite, FolderMaker);

TEST(ImageFolderTest, GivesTheFilesInTheOrderOfTheirPaths) {
  const FolderMaker maker;
  const auto files = make_image_files();
  const SourcePtr test = image_folder(maker.root(), Split::kTest);
  ASSERT_EQ(test->info().records, kTestImages);
  EXPECT_THAT(test->info().classes, ElementsAre("cat", "dog", "emu"));
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < kTestImages; ++i) {
    EXPECT_EQ(to_bytes(test->read(i, scratch).fields[0]), files.at(test->describe(i)));
  }
}

TEST(ImageFolderTest, NamesAFileThatWentMissing) {
  const FolderMaker maker;
  const SourcePtr source = maker.open();
  std::filesystem::remove(maker.folder() / "train/cat/1.jpg");
  std::vector<std::byte> scratch;
  try {
    source->read(1, scratch);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(error.location().record, 1U);
    EXPECT_THAT(error.what(), HasSubstr("train/cat/1.jpg"));
  }
  EXPECT_FALSE(source->read(2, scratch).fields[0].empty()) << "the others are still there";
}

TEST(ImageFolderTest, NamesAFileThatChangedItsSize) {
  const FolderMaker maker;
  const SourcePtr source = maker.open();
  maker.folder().write("train/cat/1.jpg", "longer or shorter than before");
  std::vector<std::byte> scratch;
  try {
    source->read(1, scratch);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
    EXPECT_EQ(error.location().record, 1U);
    EXPECT_THAT(error.what(), HasSubstr("train/cat/1.jpg has 29 bytes"));
  }
}

TEST(ImageFolderTest, SaysWhatIsWrongWithTheLayout) {
  const auto error_of = [](const TempFolder& folder) -> std::string {
    try {
      image_folder(folder.path(), Split::kTrain);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  TempFolder empty, flat, other;
  std::filesystem::create_directories(other / "a/b");
  flat.write("1.jpg", "x");
  other.write("a/notes.txt", "x");
  EXPECT_THAT(error_of(empty), HasSubstr("it is empty"));
  EXPECT_THAT(error_of(flat), HasSubstr("lie in no class folder; found 1 image"));
  EXPECT_THAT(error_of(other), HasSubstr("a/notes.txt"));
}

TEST(ImageFolderTest, CountsEachFileOnceWhereLinksLeadInCircles) {
  const FolderMaker maker;
  const std::uint64_t fingerprint = maker.open()->info().fingerprint;
  std::filesystem::create_directory_symlink(maker.root(), maker.folder() / "train/cat/loop");
  std::filesystem::create_directory_symlink("..", maker.folder() / "train/up");
  std::filesystem::create_directory_symlink("../dog", maker.folder() / "train/cat/dogs");
  std::filesystem::create_directory_symlink("../cat", maker.folder() / "train/dog/cats");
  EXPECT_EQ(maker.open()->info().records, kTrainImages);
  EXPECT_EQ(maker.open()->info().fingerprint, fingerprint);
}

TEST(ImageFolderTest, FollowsLinksThatLeadElsewhere) {
  const FolderMaker maker;
  TempFolder set;
  std::filesystem::create_directory_symlink(maker.folder() / "train", set / "train");
  std::filesystem::create_directory_symlink(maker.folder() / "train", set / "val");
  EXPECT_EQ(image_folder(set.path(), Split::kTrain)->info().records, kTrainImages);
  EXPECT_EQ(image_folder(set.path(), Split::kTest)->info().records, kTrainImages) << "the same files, as meant";
}

TEST(ImageFolderTest, CountsWhatItLeavesOut) {
  const FolderMaker maker;
  maker.folder().write("train/cat/a.gif", "x");
  maker.folder().write("train/cat/b.WEBP", "x");
  EXPECT_EQ(describe(maker.open()->info().left_out),
            "2 files left out: 1 .gif, 1 .webp; Headrace reads JPEG and PNG");
}

TEST(ImageFolderTest, TakesTheClassesFromWhereTheUserSays) {
  TempFolder folder;
  folder.write("x/only/1.jpg", "x");
  const SourcePtr source = image_folder(folder.path(), Split::kTrain, {.classes_at = "2"});
  EXPECT_THAT(source->info().classes, ElementsAre("only"));
  const SourcePtr none = open_source(folder.path(), Split::kTrain, {.layout = {.classes_at = "none"}});
  EXPECT_TRUE(none->info().classes.empty());
  EXPECT_EQ(none->label(0), 0);
}

}  // namespace
}  // namespace headrace::test
