#include "headrace/pipeline/sources/image_listing.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Paths = std::vector<std::string>;

// "path=class" of each record, in order.
Paths records(const Paths& paths, Split split) {
  const ImageListing layout = lay_out_images(paths, split, "here");
  Paths named;
  for (const auto& record : layout.records)
    named.push_back(paths[record.path] + "=" + layout.classes[record.label]);
  return named;
}

std::string error_of(const Paths& paths, Split split = Split::kTrain) {
  try {
    lay_out_images(paths, split, "here");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ImageListingTest, TakesTheSplitAskedFor) {
  const Paths paths = {"test/b/1.jpg", "train/b/2.JPEG", "train/a/3.png", "README"};
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre("train/a/3.png=a", "train/b/2.JPEG=b"));
  EXPECT_THAT(records(paths, Split::kTest), ElementsAre("test/b/1.jpg=b"));
}

TEST(ImageListingTest, SharesTheClassesOfBothSplits) {
  const Paths paths = {"train/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg"};
  EXPECT_THAT(lay_out_images(paths, Split::kTrain, "here").classes, ElementsAre("a", "b"));
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre("train/b/1.jpg=b"));
}

TEST(ImageListingTest, AllowsOneMoreFolderAround) {
  EXPECT_THAT(records({"set/train/a/1.jpg", "set/val/a/2.jpg"}, Split::kTest), ElementsAre("set/val/a/2.jpg=a"));
  EXPECT_THAT(records({"set/a/1.jpg", "set/b/2.jpg"}, Split::kTrain),
              ElementsAre("set/a/1.jpg=a", "set/b/2.jpg=b"));
}

TEST(ImageListingTest, PrefersTestToVal) {
  const Paths paths = {"train/a/1.jpg", "val/a/2.jpg", "test/a/3.jpg"};
  EXPECT_THAT(records(paths, Split::kTest), ElementsAre("test/a/3.jpg=a"));
}

TEST(ImageListingTest, TakesClassFolders) {
  EXPECT_THAT(records({"b/1.jpg", "a/2.jpg"}, Split::kTrain), ElementsAre("a/2.jpg=a", "b/1.jpg=b"));
  EXPECT_THAT(records({"only/1.jpg"}, Split::kTrain), ElementsAre("only/1.jpg=only"));
  EXPECT_THAT(records({"test/1.jpg", "train/2.jpg"}, Split::kTrain),
              ElementsAre("test/1.jpg=test", "train/2.jpg=train"))
      << "no class folders below: these are the classes";
}

TEST(ImageListingTest, TakesWnidPrefixes) {
  const Paths flat = {"n02000000_x_y.JPEG", "n01000000_z.JPEG"};
  EXPECT_THAT(records(flat, Split::kTrain),
              ElementsAre("n01000000_z.JPEG=n01000000", "n02000000_x_y.JPEG=n02000000"));
  EXPECT_THAT(records({"all/n02000000_1.JPEG"}, Split::kTrain), ElementsAre("all/n02000000_1.JPEG=n02000000"));
  EXPECT_THAT(records({"n02000000/n02000000_1.JPEG", "n03000000/n03000000_1.JPEG"}, Split::kTrain),
              ElementsAre("n02000000/n02000000_1.JPEG=n02000000", "n03000000/n03000000_1.JPEG=n03000000"));
}

TEST(ImageListingTest, DoesNotDependOnTheOrderOfPacking) {
  Paths paths = {"a-b/1.jpg", "a/1.jpg", "a/10.jpg", "a/2.jpg", "B/1.jpg", "c/1.png", "\xC3\xA9/1.jpg"};
  const Paths expected = records(paths, Split::kTrain);
  EXPECT_TRUE(std::ranges::is_sorted(expected));
  std::ranges::sort(paths);
  do {
    ASSERT_EQ(records(paths, Split::kTrain), expected);
  } while (std::ranges::next_permutation(paths).found);
}

TEST(ImageListingTest, OfEqualPathsTheLastCounts) {
  const ImageListing layout = lay_out_images({"a/1.jpg", "b/1.jpg", "a/1.jpg"}, Split::kTrain, "here");
  ASSERT_EQ(layout.records.size(), 2U);
  EXPECT_EQ(layout.records[0].path, 2U);
}

TEST(ImageListingTest, PassesOverWhatSystemsLeaveBehind) {
  EXPECT_THAT(records({"a/1.jpg", "a/._1.jpg", ".DS_Store", "a/notes.txt", "a/jpg"}, Split::kTrain),
              ElementsAre("a/1.jpg=a"));
}

TEST(ImageListingTest, SaysWhatItFoundAndWhatItUnderstands) {
  EXPECT_THAT(error_of({}), HasSubstr("here: no image"));
  EXPECT_THAT(error_of({"a.txt", "b.txt"}), HasSubstr("2 other files, as 'a.txt'"));
  EXPECT_THAT(error_of({"1.jpg", "a/2.jpg"}), HasSubstr("'1.jpg' lies in no class folder"));
  EXPECT_THAT(error_of({"train/a/1.jpg", "train/2.jpg"}), HasSubstr("'train/2.jpg' lies in no class folder"));
  EXPECT_THAT(error_of({"a/1.jpg"}, Split::kTest), HasSubstr("has no test/ folder"));
  EXPECT_THAT(error_of({"train/a/1.jpg"}, Split::kTest), HasSubstr("has no images in test/"));
  EXPECT_THAT(error_of({}), HasSubstr("train/<class>/x.jpg"));
}

}  // namespace
}  // namespace headrace::test
