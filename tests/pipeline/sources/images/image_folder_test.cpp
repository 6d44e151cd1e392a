#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"

namespace headrace::test {
namespace {

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
  const DataError error = error_of<DataError>([&] { source->read(1, scratch); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_EQ(error.location().record, 1U);
  EXPECT_THAT(error.what(), HasSubstr("train/cat/1.jpg"));
  EXPECT_FALSE(source->read(2, scratch).fields[0].empty()) << "the others are still there";
}

TEST(ImageFolderTest, NamesAFileThatChangedItsSize) {
  const FolderMaker maker;
  const SourcePtr source = maker.open();
  maker.folder().write("train/cat/1.jpg", "longer or shorter than before");
  std::vector<std::byte> scratch;
  const DataError error = error_of<DataError>([&] { source->read(1, scratch); });
  EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
  EXPECT_EQ(error.location().record, 1U);
  EXPECT_THAT(error.what(), HasSubstr("train/cat/1.jpg has 29 bytes"));
}

TEST(ImageFolderTest, SaysWhatIsWrongWithTheLayout) {
  const auto fault_in = [](const TempFolder& folder) -> std::string {
    return message_of<Error>([&] { image_folder(folder.path(), Split::kTrain); });
  };
  TempFolder empty, flat, other;
  std::filesystem::create_directories(other / "a/b");
  flat.write("1.jpg", "x");
  other.write("a/notes.txt", "x");
  EXPECT_THAT(fault_in(empty), HasSubstr("it is empty"));
  EXPECT_THAT(fault_in(flat), HasSubstr("lie in no class folder; found 1 image"));
  EXPECT_THAT(fault_in(other), HasSubstr("a/notes.txt"));
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

// Images of two classes with text, JSON and a mask beside each.
void write_with_sidecars(const TempFolder& folder) {
  for (const std::string name : {"cat/1", "cat/2", "dog/1"}) {
    folder.write(name + ".jpg", encode_jpeg(make_picture(6, 7, 3, name[0])));
    folder.write(name + ".seg.png", encode_png(make_picture(6, 7, 1, name[0])));
    folder.write(name + ".txt", "a " + name);
    folder.write(name + ".json", "{\"size\": [" + name.substr(4) + ", 0.5]}");
  }
}

TEST(ImageFolderTest, TakesFilesBesideImagesAlong) {
  const TempFolder folder;
  write_with_sidecars(folder);
  const auto path = folder.path();
  const ColumnOptions columns{.columns = {"txt", "seg.png:mask", "size=json.size"}};
  const SourcePtr source = open_source(path, Split::kTrain, {.columns = columns});
  ASSERT_EQ(source->info().records, 3U) << "a mask is no image of its own";
  ASSERT_EQ(source->info().fields.size(), 5U);
  EXPECT_EQ(source->info().fields[4], (Field{.name = "size", .dtype = DType::kF32, .shape = {2}}));
  std::vector<std::byte> scratch;
  const RecordView view = source->read(2, scratch);
  EXPECT_EQ(to_bytes(view.fields[0]), encode_jpeg(make_picture(6, 7, 3, 'd')));
  EXPECT_EQ(label_of(*source, 2), 1);
  const RecordView again = source->read(2, scratch);
  EXPECT_EQ(to_bytes(again.fields[2]), to_bytes("a dog/1"));
  EXPECT_EQ(to_bytes(again.fields[3]), encode_png(make_picture(6, 7, 1, 'd')));
  float size[2] = {};
  std::memcpy(size, again.fields[4].data(), sizeof size);
  EXPECT_EQ(size[0], 1);
  EXPECT_NE(source->info().fingerprint,
            image_folder(path, Split::kTrain, {}, {.columns = {"txt"}})->info().fingerprint);
  EXPECT_EQ(image_folder(path, Split::kTrain)->info().records, 6U) << "without them, masks are images as before";
}

TEST(ImageFolderTest, AnImageWithoutItsFileIsABadRecord) {
  const TempFolder folder;
  write_with_sidecars(folder);
  std::filesystem::remove(folder / "cat/2.txt");
  const SourcePtr source = image_folder(folder.path(), Split::kTrain, {}, {.columns = {"txt", "seg.png"}});
  std::vector<std::byte> scratch;
  EXPECT_NO_THROW(source->read(0, scratch));
  const DataError error = error_of<DataError>([&] { source->read(1, scratch); });
  EXPECT_THAT(error.what(), HasSubstr("cat/2.jpg: its file 'cat/2.txt' is missing"));
  EXPECT_EQ(error.location().record, 1U);
  folder.write("dog/1.txt", "of another size than before");
  EXPECT_THROW(source->read(2, scratch), DataError);
}

// Photographs and masks in folders of their own: by pattern of the masks' paths, and how many masks have no image.
TEST(ImageFolderTest, PairsFilesOfOtherFoldersByTheirNames) {
  const TempFolder folder;
  Picture shown;
  const auto mask_of = [&](const std::string& name) {
    return encode_palette_png(make_picture(4, 4, 3, static_cast<std::uint64_t>(name.back())), shown);
  };
  for (const std::string name : {"1", "10", "2"}) {
    const Bytes image = encode_jpeg(make_picture(4, 4, 3, 1));
    folder.write("images/" + name + ".jpg", image);
    folder.write("deep/images/a/" + name + ".jpg", image);
    folder.write("masks/" + name + "_mask.png", mask_of(name));
    folder.write("masks/a/" + name + ".png", mask_of(name));
  }
  folder.write("masks/3_mask.png", mask_of("3"));
  folder.write("masks/thumbs.db", "x");
  const struct {
    std::string path, pattern;
  } cases[] = {{"images", "../masks/{stem}_mask.png"},
               {"images", "./../masks/x/../{stem}_mask.png"},
               {"images", (folder / "masks/{stem}_mask.png").string()},
               {"deep/images", "../../masks/{folder}/{stem}.png"},
               {"", "masks/{stem}_mask.png"}};
  for (const auto& [path, pattern] : cases) {
    SCOPED_TRACE(pattern);
    if (path.empty())
      std::filesystem::remove_all(folder / "deep"), std::filesystem::remove_all(folder / "masks/a");
    const SourcePtr source =
        open_source(folder / path, Split::kTrain,
                    {.layout = {.classes_at = "none"}, .columns = {.columns = {"mask=" + pattern + ":mask"}}});
    ASSERT_EQ(source->info().records, 3U);
    EXPECT_EQ(source->info().fields[2].shape, (Shape{Shape::kDynamic, Shape::kDynamic, 1}));
    std::vector<std::byte> scratch;
    for (std::uint64_t record = 0; record < 3; ++record) {
      std::string name = std::filesystem::path(source->describe(record)).stem().string();
      EXPECT_EQ(to_bytes(source->read(record, scratch).fields[2]), mask_of(name)) << name;
    }
    const bool has_third = pattern.find("_mask") != std::string::npos;
    EXPECT_EQ(std::ranges::count(source->info().left_out, std::uint64_t{1}, &LeftOut::files), has_third ? 1 : 0);
  }
  std::filesystem::remove(folder / "masks/10_mask.png");
  const auto open = [&](const std::string& choice) {
    return image_folder(folder / "images", Split::kTrain, {.classes_at = "none"}, {.columns = {choice}});
  };
  std::vector<std::byte> scratch;
  const auto fault_in = [&](const std::string& choice) {
    try {
      open(choice)->read(1, scratch);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(fault_in("mask=../masks/{stem}_mask.png:mask"),
              HasSubstr("10.jpg: its file '../masks/10_mask.png' is missing"));
  EXPECT_THAT(fault_in("../masks/{stem}_mask.png"), HasSubstr("needs a field's name"));
  EXPECT_THAT(fault_in("mask=../masks/{name}.png"), HasSubstr("no {stem} says which image"));
  EXPECT_THAT(fault_in("mask=../masks/{class}/{stem}.png"), HasSubstr("'{class}' is neither {stem} nor {folder}"));
  EXPECT_THAT(fault_in("mask=../msks/{stem}.png"), HasSubstr("msks"));
  EXPECT_THAT(fault_in("mask=../masks/{stem}_msk.png"), HasSubstr("no member '../masks/{stem}_msk.png'"));
}

TEST(ImageFolderTest, NamesNoImageAndNoLabelAmongItsFiles) {
  const TempFolder folder;
  write_with_sidecars(folder);
  const auto error_with = [&](const ColumnOptions& columns) {
    try {
      open_source(folder.path(), Split::kTrain, {.columns = columns});
      return std::string();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(error_with({.label_column = "json.size"}), HasSubstr("whose labels are folders"));
  EXPECT_THAT(
      error_with({.columns = {"text"}}),
      HasSubstr("no member 'text' in its first samples; there are jpg, json, png, txt: did you mean 'txt'?"));
}

}  // namespace
}  // namespace headrace::test
