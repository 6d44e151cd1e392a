#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/tests/pipeline/sources/images/image_listing_fixture.h"

namespace headrace::test {
namespace {

// "path=class" of each record, in order.
Paths records(const Paths& paths, Split split, const LayoutOptions& options = {}) {
  const ImageListing layout = laid_out(paths, split, options);
  Paths named;
  for (const auto& record : layout.records) {
    named.push_back(paths[record.path] + "=" +
                    (layout.classes.empty() ? std::to_string(record.label) : layout.classes[record.label]));
  }
  return named;
}

std::string left_out(const Paths& paths, const LayoutOptions& options = {}) {
  return describe(laid_out(paths, Split::kTrain, options).left_out);
}

TEST(ImageListingTest, TakesTheSplitAskedFor) {
  const Paths paths = {"test/b/1.jpg", "train/b/2.JPEG", "train/a/3.png", "README"};
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre("train/a/3.png=a", "train/b/2.JPEG=b"));
  EXPECT_THAT(records(paths, Split::kTest), ElementsAre("test/b/1.jpg=b"));
}

TEST(ImageListingTest, SharesTheClassesOfAllSplits) {
  const Paths paths = {"train/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg", "val/c/1.jpg"};
  EXPECT_THAT(laid_out(paths, Split::kTrain).classes, ElementsAre("a", "b", "c"));
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre("train/b/1.jpg=b"));
}

TEST(ImageListingTest, LooksThroughAnyNumberOfFolders) {
  std::string above;
  for (int depth = 0; depth < 9; ++depth, above += "f" + std::to_string(depth) + "/") {
    const Paths classes = {above + "cat/1.jpg", above + "dog/2.jpg"};
    EXPECT_THAT(records(classes, Split::kTrain), ElementsAre(classes[0] + "=cat", classes[1] + "=dog"));
    const Paths splits = {above + "train/cat/1.jpg", above + "train/dog/2.jpg", above + "val/cat/3.jpg"};
    EXPECT_THAT(records(splits, Split::kTrain), ElementsAre(splits[0] + "=cat", splits[1] + "=dog"));
    EXPECT_THAT(records(splits, Split::kTest), ElementsAre(splits[2] + "=cat"));
    const Paths wnids = {above + "n01000000_1.JPEG", above + "n02000000_2.JPEG"};
    EXPECT_THAT(records(wnids, Split::kTrain), ElementsAre(wnids[0] + "=n01000000", wnids[1] + "=n02000000"));
  }
}

// The layouts of data sets that people download.
TEST(ImageListingTest, TakesImagenetAsKaggleGivesIt) {
  const std::string root = "ILSVRC/Data/CLS-LOC/";
  const Paths paths = {root + "train/n01440764/n01440764_1.JPEG",
                       root + "train/n01443537/n01443537_2.JPEG",
                       root + "val/ILSVRC2012_val_00000001.JPEG",
                       root + "test/ILSVRC2012_test_00000001.JPEG",
                       "ILSVRC/Annotations/CLS-LOC/val/ILSVRC2012_val_00000001.xml",
                       "ILSVRC/ImageSets/CLS-LOC/train_cls.txt"};
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre(paths[0] + "=n01440764", paths[1] + "=n01443537"));
  EXPECT_EQ(left_out(paths), "2 files left out: 1 in ILSVRC/Data/CLS-LOC/test/, 1 in ILSVRC/Data/CLS-LOC/val/");
  EXPECT_EQ(
      error_of_listing(paths, Split::kTest),
      "here: the images in ILSVRC/Data/CLS-LOC/test/ (1) do not lie in class folders as those in "
      "ILSVRC/Data/CLS-LOC/train/ do: their classes are not known; found ILSVRC/Data/CLS-LOC/{test/ 1 image, "
      "train/{n01440764/ 1 image, n01443537/ 1 image}, val/ 1 image} | sort them into a folder a class, or list "
      "them in a .csv with the columns path and label");
  Paths sorted = paths;
  sorted[2] = root + "val/n01440764/ILSVRC2012_val_00000001.JPEG";
  EXPECT_THAT(records(sorted, Split::kTest), ElementsAre(sorted[2] + "=n01440764"))
      << "val/ has classes, test/ has none";
}

TEST(ImageListingTest, TakesTinyImagenet) {
  const Paths paths = {"tiny/train/n01443537/images/n01443537_0.JPEG",
                       "tiny/train/n01629819/images/n01629819_0.JPEG", "tiny/val/images/val_0.JPEG",
                       "tiny/test/images/test_0.JPEG"};
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre(paths[0] + "=n01443537", paths[1] + "=n01629819"));
  EXPECT_THAT(error_of_listing(paths, Split::kTest), HasSubstr("their classes are not known"));
}

TEST(ImageListingTest, TakesOtherNamesOfSplits) {
  const Paths paths = {"Training/a/1.jpg", "Training/b/2.jpg", "validation/a/3.jpg", "Testing/b/4.jpg"};
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre("Training/a/1.jpg=a", "Training/b/2.jpg=b"));
  EXPECT_THAT(records(paths, Split::kTest), ElementsAre("Testing/b/4.jpg=b"));
  EXPECT_EQ(left_out(paths), "1 file left out: 1 in validation/");
}

TEST(ImageListingTest, PrefersTestToVal) {
  const Paths paths = {"train/a/1.jpg", "train/b/1.jpg", "val/a/2.jpg", "test/a/3.jpg"};
  EXPECT_THAT(records(paths, Split::kTest), ElementsAre("test/a/3.jpg=a"));
  EXPECT_THAT(records(paths, Split::kTest, {.test_folder = "val"}), ElementsAre("val/a/2.jpg=a"));
  EXPECT_EQ(left_out(paths, {.test_folder = "val"}), "1 file left out: 1 in test/");
}

TEST(ImageListingTest, TakesClassFolders) {
  EXPECT_THAT(records({"b/1.jpg", "a/2.jpg"}, Split::kTrain), ElementsAre("a/2.jpg=a", "b/1.jpg=b"));
  EXPECT_THAT(records({"bus/1.jpg", "car/2.jpg", "train/3.jpg"}, Split::kTrain),
              ElementsAre("bus/1.jpg=bus", "car/2.jpg=car", "train/3.jpg=train"))
      << "a class may be called train";
}

TEST(ImageListingTest, TakesWnidPrefixes) {
  const Paths flat = {"n02000000_x_y.JPEG", "n01000000_z.JPEG"};
  EXPECT_THAT(records(flat, Split::kTrain),
              ElementsAre("n01000000_z.JPEG=n01000000", "n02000000_x_y.JPEG=n02000000"));
  EXPECT_THAT(records({"n02000000/n02000000_1.JPEG", "n03000000/n03000000_1.JPEG"}, Split::kTrain),
              ElementsAre("n02000000/n02000000_1.JPEG=n02000000", "n03000000/n03000000_1.JPEG=n03000000"));
  EXPECT_THAT(records({"train/n02000000_1.JPEG", "train/n03000000_1.JPEG", "val/n03000000_2.JPEG"}, Split::kTest),
              ElementsAre("val/n03000000_2.JPEG=n03000000"));
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
  const ImageListing layout = laid_out({"a/1.jpg", "b/1.jpg", "a/1.jpg"}, Split::kTrain);
  ASSERT_EQ(layout.records.size(), 2U);
  EXPECT_EQ(layout.records[0].path, 2U);
}

TEST(ImageListingTest, CountsWhatItLeavesOut) {
  const Paths paths = {"a/1.jpg", "a/._1.jpg", ".DS_Store", "a/notes.txt", "a/jpg",
                       "b/2.jpg", "a/1.gif",   "a/2.GIF",   "b/3.webp",    "b/.4.webp"};
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre("a/1.jpg=a", "b/2.jpg=b"));
  EXPECT_EQ(left_out(paths), "3 files left out: 2 .gif, 1 .webp; Headrace reads JPEG and PNG");
  EXPECT_EQ(left_out({"train/a/1.jpg", "train/b/1.jpg", "test/a/1.jpg", "more/a/1.jpg", "logo.png"}),
            "2 files left out: 2 in no split folder");
  EXPECT_EQ(left_out({"a/1.jpg", "b/2.jpg"}), "");
  Paths many = {"a/1.jpg", "b/2.jpg"};
  for (int i = 0; i < 1200; ++i) many.push_back("a/" + std::to_string(i) + ".bmp");
  EXPECT_EQ(left_out(many), "1,200 files left out: 1,200 .bmp; Headrace reads JPEG and PNG");
}

TEST(ImageListingTest, TakesTheClassesFromWhereTheUserSays) {
  const Paths depths = {"photos/x/cat/1.jpg", "photos/x/cat/old/2.jpg", "photos/y/dog/3.jpg"};
  EXPECT_THAT(records(depths, Split::kTrain, {.classes_at = "3"}),
              ElementsAre(depths[0] + "=cat", depths[1] + "=cat", depths[2] + "=dog"));
  EXPECT_THAT(records(depths, Split::kTrain, {.classes_at = "parent"}),
              ElementsAre(depths[0] + "=cat", depths[1] + "=old", depths[2] + "=dog"));
  EXPECT_THAT(records(depths, Split::kTrain, {.classes_at = "photos/x/{class}"}),
              ElementsAre(depths[0] + "=cat", depths[1] + "=cat"));
  EXPECT_EQ(left_out(depths, {.classes_at = "photos/x/{class}/"}),
            "1 file left out: 1 not below photos/x/{class}/");
  EXPECT_THAT(records({"a/1.jpg", "2.jpg"}, Split::kTrain, {.classes_at = "none"}),
              ElementsAre("2.jpg=0", "a/1.jpg=0"));
  EXPECT_THAT(records({"a/1.jpg"}, Split::kTrain, {.classes_at = "1"}), ElementsAre("a/1.jpg=a"));
  EXPECT_THAT(records({"test/1.jpg", "train/2.jpg"}, Split::kTrain, {.classes_at = "1"}),
              ElementsAre("test/1.jpg=test", "train/2.jpg=train"))
      << "then these are classes";
  EXPECT_THAT(records({"test/1.jpg", "train/2.jpg"}, Split::kTrain, {.classes_at = "parent"}),
              ElementsAre("test/1.jpg=test", "train/2.jpg=train"));
  const Paths inside = {"cat/train/1.jpg", "cat/test/2.jpg", "dog/train/3.jpg"};
  EXPECT_THAT(records(inside, Split::kTrain, {.classes_at = "{class}/{split}"}),
              ElementsAre(inside[0] + "=cat", inside[2] + "=dog"));
  EXPECT_THAT(records(inside, Split::kTest, {.classes_at = "{class}/{split}"}), ElementsAre(inside[1] + "=cat"));
  EXPECT_THAT(records({"set/test/a/1.jpg", "set/train/b/2.jpg"}, Split::kTrain, {.classes_at = "set/*/{class}"}),
              ElementsAre("set/train/b/2.jpg=b"))
      << "no test image among the train split";
}

TEST(ImageListingTest, TakesTheSplitsFromWhereTheUserSays) {
  const Paths twice = {"seg_train/seg_train/sea/1.jpg", "seg_train/seg_train/ice/2.jpg",
                       "seg_test/seg_test/sea/3.jpg", "seg_pred/seg_pred/4.jpg"};
  const LayoutOptions options{.train_folder = "seg_train", .test_folder = "seg_test/"};
  EXPECT_THAT(records(twice, Split::kTrain, options), ElementsAre(twice[1] + "=ice", twice[0] + "=sea"));
  EXPECT_THAT(records(twice, Split::kTest, options), ElementsAre(twice[2] + "=sea"));
  EXPECT_EQ(left_out(twice, options), "1 file left out: 1 in no split folder");
  const Paths small = {"set/train/a/1.jpg", "set/train_small/a/2.jpg", "set/train_small/b/3.jpg",
                       "set/val/a/4.jpg"};
  EXPECT_THAT(records(small, Split::kTrain, {.train_folder = "train_small"}),
              ElementsAre(small[1] + "=a", small[2] + "=b"));
  EXPECT_THAT(records(small, Split::kTest, {.train_folder = "train_small"}), ElementsAre(small[3] + "=a"));
}

TEST(ImageListingTest, TakesFoldersThatDifferInTheSplitAlone) {
  for (const auto& [train, test] : {std::pair{"train_images", "test_images"},
                                    {"train2017", "val2017"},
                                    {"imgsTrain", "imgsTest"},
                                    {"ds-training", "ds-dev"},
                                    {"TRAIN_1", "VALID_1"}}) {
    const std::string a = std::string("x/") + train + "/cat/1.jpg", b = std::string("x/") + train + "/dog/2.jpg",
                      c = std::string("x/") + test + "/cat/3.jpg";
    EXPECT_THAT(records({a, b, c}, Split::kTrain), ElementsAre(a + "=cat", b + "=dog"));
    EXPECT_THAT(records({a, b, c}, Split::kTest), ElementsAre(c + "=cat"));
  }
  EXPECT_THAT(records({"bullet_train/1.jpg", "tram/2.jpg"}, Split::kTrain),
              ElementsAre("bullet_train/1.jpg=bullet_train", "tram/2.jpg=tram"));
}

TEST(ImageListingTest, LeavesOutWhatToolsPutThere) {
  const Paths paths = {
      "cat/1.jpg",          "dog/2.jpg",        ".ipynb_checkpoints/1-checkpoint.jpg", "cat/.thumbnails/1.png",
      "__MACOSX/cat/1.jpg", "@eaDir/cat/1.jpg", "dog/.ipynb_checkpoints/x.gif"};
  EXPECT_THAT(records(paths, Split::kTrain), ElementsAre("cat/1.jpg=cat", "dog/2.jpg=dog"));
  EXPECT_EQ(left_out(paths),
            "4 files left out: 1 in hidden folders, .ipynb_checkpoints/, 1 in hidden folders, .thumbnails/, 1 in "
            "hidden folders, @eaDir/, 1 in hidden folders, __MACOSX/");
  EXPECT_THAT(records({".a/cat/1.jpg", ".a/dog/2.jpg"}, Split::kTrain, {.classes_at = ".a/{class}"}),
              ElementsAre(".a/cat/1.jpg=cat", ".a/dog/2.jpg=dog"))
      << "unless they are named";
  EXPECT_THAT(error_of_listing({".a/cat/1.jpg", ".a/dog/2.jpg"}),
              HasSubstr("all of them are in hidden folders, as .a/"));
}

TEST(ImageListingTest, AnEmptyClassFolderKeepsItsLabel) {
  const auto classes = [](const Paths& paths, const LayoutOptions& options = {}) {
    return laid_out(paths, Split::kTrain, options).classes;
  };
  const Paths three = {"a", "b", "c"};
  EXPECT_EQ(classes({"a/1.jpg", "b/", "c/2.jpg"}), three);
  EXPECT_EQ(classes({"a/1.jpg", "b/1.webp", "c/2.jpg"}), three);
  EXPECT_EQ(classes({"a/1.jpg", "b/.gitkeep", "c/2.jpg"}), three);
  EXPECT_EQ(classes({"s/train/a/1.jpg", "s/train/c/1.jpg", "s/val/b/", "s/val/a/1.jpg"}), three);
  EXPECT_EQ(classes({"s/a/1.jpg", "s/b/", "s/c/2.jpg"}, {.classes_at = "2"}), three);
  EXPECT_EQ(classes({"a/1.jpg", "b/2.jpg", "c/", "empty/", "c/3.jpg", ".git/"}), (Paths{"a", "b", "c", "empty"}));
  EXPECT_EQ(classes({"a/1.jpg", "b/notes.txt", "c/2.jpg"}), (Paths{"a", "c"})) << "no folder of images";
  EXPECT_EQ(classes({"a/b/1.jpg", "a/c/2.jpg", "x/"}), (Paths{"b", "c"})) << "not beside the classes";
  EXPECT_THAT(laid_out({"a/1.jpg", "b/", "c/2.jpg", "d/x.txt"}, Split::kTrain).reading,
              HasSubstr("classes without an image: b"));
  EXPECT_THAT(left_out({"a/1.jpg", "c/2.jpg", "d/x.txt"}), HasSubstr("folder without images, d/"));
}

TEST(ImageListingTest, SaysWhatLiesBesideImages) {
  EXPECT_EQ(
      left_out({"metadata.csv", "a/1.jpg", "a/1.json", "b/2.jpg", "b/2.json", "b/labels.jsonl", "README.txt"}),
      "4 files left out: 1 table labels.jsonl, 1 table metadata.csv, 2 beside images, .json");
}

TEST(ImageListingTest, SaysHowItRead) {
  const auto reading = [](const Paths& paths, const LayoutOptions& options = {}) {
    return laid_out(paths, Split::kTrain, options).reading;
  };
  EXPECT_EQ(reading({"a/1.jpg", "b/2.jpg"}), "all images are the train split; class: folder 1 from the top");
  EXPECT_EQ(reading({"s/train/a/1.jpg", "s/train/b/2.jpg", "s/val/a/3.jpg"}),
            "train split: s/train/ (val: s/val/); class: folder 3 from the top");
  EXPECT_EQ(reading({"n01000000_1.JPEG", "n02000000_2.JPEG"}),
            "all images are the train split; class: the wnid in each file's name");
  EXPECT_EQ(reading({"1.jpg"}, {.classes_at = "none"}),
            "all images are the train split; no classes, as asked for: every label is 0");
}

TEST(ImageListingTest, GuessesWhichSplitOnePathIsOf) {
  EXPECT_FALSE(seems_of_other_split("train/a/1.jpg", Split::kTrain));
  EXPECT_TRUE(seems_of_other_split("a/b/c/val/1.jpg", Split::kTrain));
  EXPECT_TRUE(seems_of_other_split("a/b/train/1.jpg", Split::kTest));
  EXPECT_FALSE(seems_of_other_split("a/train.jpg", Split::kTest));
}

}  // namespace
}  // namespace headrace::test
