// Trees of images that can be read in more than one way, or in none: what is said of them.
#include "headrace/tests/pipeline/sources/images/image_listing_fixture.h"

namespace headrace::test {
namespace {

struct Refusal {
  const char* about;
  Paths paths;
  Split split = Split::kTrain;
  LayoutOptions options = {};
  std::string message;
};

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> table = {
      {.about = "nothing there",
       .paths = {},
       .message = "data: here: no image (.jpg, .jpeg, .png) in it; it is empty"},
      {.about = "no image",
       .paths = {"a.txt", "b.txt"},
       .message = "data: here: no image (.jpg, .jpeg, .png) in it; found 2 other files, as 'a.txt'"},
      {.about = "images side by side",
       .paths = {"1.jpg", "2.jpg"},
       .message =
           "here: the images lie in no class folder; found 2 images | put each class into a folder, list the "
           "images in a .csv with the columns path and label, or say LayoutOptions::classes_at = none: every "
           "label is 0"},
      {.about = "splits without classes",
       .paths = {"train/cat.1.jpg", "train/dog.2.jpg", "test/3.jpg"},
       .message =
           "here: the images in train/ lie in no class folder; found {test/ 1 image, train/ 2 images} | put "
           "each class into a folder, list the images in a .csv with the columns path and label, or say "
           "LayoutOptions::classes_at = none: every label is 0"},
      {.about = "one class",
       .paths = {"a/b/1.jpg", "a/b/2.jpg"},
       .message =
           "here: all 2 images would be of one class, 'b'; found a/b/ 2 images | where one class is meant, say "
           "LayoutOptions::classes_at = 2; else put the images of each class into a folder of their own"},
      {.about = "one image",
       .paths = {"a/1.jpg"},
       .message = "here: its image would be of one class, 'a'; found a/ 1 image | where one class is meant, say "
                  "LayoutOptions::classes_at = 1; else put the images of each class into a folder of their own"},
      {.about = "one wnid",
       .paths = {"n01000000_1.JPEG", "n01000000_2.JPEG"},
       .message =
           "here: all 2 images would be of one class, 'n01000000'; found 2 images | where one class is meant, "
           "say LayoutOptions::classes_at = none; else put the images of each class into a folder of their own"},
      {.about = "several depths",
       .paths = {"logo.jpg", "a/2.jpg", "b/c/3.jpg"},
       .message =
           "here: images lie at several depths, as 'logo.jpg' and 'b/c/3.jpg': it cannot be told which folder "
           "names the class; found {1 image, a/ 1 image, b/c/ 1 image} | say it: LayoutOptions::classes_at = 1 "
           "(the folder's "
           "number from the top), LayoutOptions::classes_at = parent (the one an image lies in), or a pattern as "
           "LayoutOptions::classes_at = "
           "'photos/*/{class}'"},
      {.about = "several depths in a split",
       .paths = {"s/train/a/1.jpg", "s/train/2.jpg", "s/test/a/1.jpg"},
       .message =
           "here: images lie at several depths, as 's/train/2.jpg' and 's/train/a/1.jpg': it cannot be told "
           "which folder names the class; found s/{test/a/ 1 image, train/{1 image, a/ 1 image}} | say it: "
           "LayoutOptions::classes_at = 3 (the folder's number from the top), LayoutOptions::classes_at = parent "
           "(the one an image lies in), "
           "or a pattern as LayoutOptions::classes_at = 'photos/*/{class}'"},
      {.about = "classes at two depths",
       .paths = {"w/cat/2020/1.jpg", "w/cat/2021/2.jpg", "w/dog/2020/3.jpg"},
       .message =
           "here: it cannot be told which folders are the classes: 2 folder names at depth 2 (cat, dog), or 2 "
           "folder names at depth 3 (2020, 2021); found w/{cat/{2020/ 1 image, 2021/ 1 image}, dog/2020/ 1 "
           "image} | say it: LayoutOptions::classes_at = 2 or LayoutOptions::classes_at = 3; where folders are "
           "splits, name them with "
           "LayoutOptions::train_folder and LayoutOptions::test_folder"},
      {.about = "splits within classes: no test image may be trained on",
       .paths = {"cat/train/1.jpg", "cat/test/2.jpg", "dog/train/3.jpg"},
       .message =
           "here: it cannot be told which folders are the classes: 2 folder names at depth 1 (cat, dog), or 2 "
           "folder names at depth 2 (test, train); found {cat/{test/ 1 image, train/ 1 image}, dog/train/ 1 "
           "image} | say it: LayoutOptions::classes_at = 1 or LayoutOptions::classes_at = 2; where folders are "
           "splits, name them with "
           "LayoutOptions::train_folder and LayoutOptions::test_folder"},
      {.about = "parts of one data set",
       .paths = {"part1/n01000000_1.JPEG", "part2/n01000000_2.JPEG", "part2/n02000000_1.JPEG"},
       .message =
           "here: the images are named by their class, as n01000000, and those of one class lie in several "
           "folders; found {part1/ 1 image, part2/ 2 images} | where the folders are the classes, say "
           "LayoutOptions::classes_at = 1; where they are parts of one data set, put the images into one folder"},
      {.about = "a class called test",
       .paths = {"aim/1.jpg", "test/2.jpg"},
       .message =
           "here: 'test/' is called like a split, and the folders beside it are not; found {aim/ 1 image, test/ "
           "1 image} | where it is a class, say LayoutOptions::classes_at = 1; where it is a split, name the "
           "other with "
           "LayoutOptions::train_folder or LayoutOptions::test_folder"},
      {.about = "a split beside what may be one",
       .paths = {"x/images/a/1.jpg", "x/val/a/2.jpg"},
       .message = "here: 'x/val/' is called like a split, and the folders beside it are not; found x/{images/a/ 1 "
                  "image, val/a/ 1 image} | where it is a class, say LayoutOptions::classes_at = 2; where it is a "
                  "split, name the "
                  "other with LayoutOptions::train_folder or LayoutOptions::test_folder"},
      {.about = "two names of one split",
       .paths = {"train/a/1.jpg", "training/a/2.jpg"},
       .message = "here: 'train/' and 'training/' are both called like one split; found {train/a/ 1 image, "
                  "training/a/ 1 image} | say which it is with LayoutOptions::train_folder or "
                  "LayoutOptions::test_folder"},
      {.about = "two folders of each split",
       .paths = {"trainA/1.jpg", "trainB/2.jpg", "testA/3.jpg", "testB/4.jpg"},
       .message =
           "here: 'testA/' and 'testB/' are named after splits, and it cannot be told which folder is which "
           "split; "
           "found {testA/ 1 image, testB/ 1 image, trainA/ 1 image, trainB/ 1 image} | where they are splits, "
           "name "
           "them with LayoutOptions::train_folder or LayoutOptions::test_folder; where they are classes, say "
           "LayoutOptions::classes_at = 1"},
      {.about = "splits with other names around",
       .paths = {"my_train/1.jpg", "test_set/2.jpg"},
       .message =
           "here: 'my_train/' and 'test_set/' are named after splits, and it cannot be told which folder is which "
           "split; found {my_train/ 1 image, test_set/ 1 image} | where they are splits, name them with "
           "LayoutOptions::train_folder or LayoutOptions::test_folder; where they are classes, say "
           "LayoutOptions::classes_at = 1"},
      {.about = "a train split beside what is named after another",
       .paths = {"train/1.jpg", "test_b/2.jpg"},
       .message = "here: 'train/' is called like a split, and the folders beside it are not; found {test_b/ 1 "
                  "image, train/ "
                  "1 image} | where it is a class, say LayoutOptions::classes_at = 1; where it is a split, name "
                  "the other "
                  "with LayoutOptions::train_folder or LayoutOptions::test_folder"},
      {.about = "images of Kaggle's splits without classes",
       .paths = {"train_images/0.jpg", "train_images/1.jpg", "test_images/2.jpg"},
       .message =
           "here: the images in train_images/ lie in no class folder; found {test_images/ 1 image, train_images/ "
           "2 "
           "images} | put each class into a folder, list the images in a .csv with the columns path and label, or "
           "say LayoutOptions::classes_at = none: every label is 0"},
      {.about = "images and masks",
       .paths = {"images/0.jpg", "masks/0.png"},
       .message =
           "here: 'images/' and 'masks/' look like images and what belongs to each of them, not like classes; "
           "found {images/ 1 image, masks/ 1 image} | where they are classes, say LayoutOptions::classes_at = "
           "1; else open each folder by itself, with LayoutOptions::classes_at = none, and pair them"},
      {.about = "inputs and targets in another case",
       .paths = {"d/Input/0.jpg", "d/Target/0.png"},
       .message =
           "here: 'Input/' and 'Target/' look like images and what belongs to each of them, not like classes; "
           "found d/{Input/ 1 image, Target/ 1 image} | where they are classes, say LayoutOptions::classes_at "
           "= 2; else open each folder by itself, with LayoutOptions::classes_at = none, and pair them"},
      {.about = "no test split at all",
       .paths = {"a/1.jpg", "b/2.jpg"},
       .split = Split::kTest,
       .message = "here: has no test/ folder: all of its images are the train split | name the folder of the test "
                  "split with LayoutOptions::test_folder, or read all of them with split = train"},
      {.about = "only a train split",
       .paths = {"train/a/1.jpg", "train/b/1.jpg"},
       .split = Split::kTest,
       .message =
           "here: has no images in test/ or val/; found train/{a/ 1 image, b/ 1 image} | name the folder of "
           "the test split with LayoutOptions::test_folder"},
      {.about = "only a test split",
       .paths = {"test/a/1.jpg", "test/b/1.jpg"},
       .message =
           "here: has no images in train/; found test/{a/ 1 image, b/ 1 image} | name the folder of the train "
           "split with LayoutOptions::train_folder"},
      {.about = "a folder that is not there",
       .paths = {"a/1.jpg", "b/2.jpg"},
       .options = {.train_folder = "c"},
       .message = "here: no images in a folder 'c'; found {a/ 1 image, b/ 1 image} | "},
      {.about = "a folder that is there twice",
       .paths = {"a/x/1/1.jpg", "b/x/1/2.jpg"},
       .options = {.test_folder = "x"},
       .message =
           "here: several folders are called 'x': a/x/, b/x/; found {a/x/1/ 1 image, b/x/1/ 1 image} | name it "
           "with the folders above it, as a/x/"},
      {.about = "splits within each other",
       .paths = {"a/x/1/1.jpg", "a/x/2/2.jpg"},
       .options = {.train_folder = "a", .test_folder = "x"},
       .message =
           "here: the folders 'a' and 'x' lie within each other; found a/x/{1/ 1 image, 2/ 1 image} | name two "
           "folders of which neither holds the other"},
      {.about = "classes deeper than an image",
       .paths = {"1.jpg", "a/2.jpg"},
       .options = {.classes_at = "1"},
       .message = "here: '1.jpg' has no folder that names its class with LayoutOptions::classes_at = 1; found {1 "
                  "image, a/ 1 image} "
                  "| a pattern as LayoutOptions::classes_at = '*/{class}' leaves out what does not match it"},
      {.about = "a pattern that nothing matches",
       .paths = {"a/1.jpg", "b/2.jpg"},
       .options = {.classes_at = "c/{class}"},
       .message =
           "here: no image lies below folders as 'c/{class}'; found {a/ 1 image, b/ 1 image} | a pattern begins "
           "at the top of the tree; * is any one folder"},
      {.about = "depth 0",
       .paths = {"a/1.jpg"},
       .options = {.classes_at = "0"},
       .message =
           "classes at '0': folders are counted from 1 | it is a number (1: the topmost folder), parent, none, "
           "or a pattern as photos/*/{class} or {class}/{split}"},
      {.about = "a pattern without a class",
       .paths = {"a/1.jpg"},
       .options = {.classes_at = "a/*"},
       .message =
           "classes at 'a/*': there is no {class} in it | it is a number (1: the topmost folder), parent, none, "
           "or a pattern as photos/*/{class} or {class}/{split}"},
      {.about = "a pattern with two classes",
       .paths = {"a/1.jpg"},
       .options = {.classes_at = "{class}/{class}"},
       .message =
           "classes at '{class}/{class}': {class} stands there twice | it is a number (1: the topmost folder), "
           "parent, none, or a pattern as photos/*/{class} or {class}/{split}"},
      {.about = "a pattern with two splits",
       .paths = {"a/1.jpg"},
       .options = {.classes_at = "{split}/{split}/{class}"},
       .message =
           "classes at '{split}/{split}/{class}': {split} stands there twice | it is a number (1: the topmost "
           "folder), parent, none, or a pattern as photos/*/{class} or {class}/{split}"},
      {.about = "a pattern with another word",
       .paths = {"a/1.jpg"},
       .options = {.classes_at = "{label}"},
       .message =
           "classes at '{label}': '{label}' means nothing | it is a number (1: the topmost folder), parent, "
           "none, or a pattern as photos/*/{class} or {class}/{split}"},
      {.about = "a pattern with an empty name",
       .paths = {"a/1.jpg"},
       .options = {.classes_at = "/{class}"},
       .message =
           "classes at '/{class}': a folder without a name | it is a number (1: the topmost folder), parent, "
           "none, or a pattern as photos/*/{class} or {class}/{split}"},
  };
  return table;
}

TEST(ImageListingRefusals, RefusesWhatItCannotTell) {
  for (const Refusal& one : refusals()) {
    EXPECT_EQ(error_of_listing(one.paths, one.split, one.options), one.message) << one.about;
  }
}

TEST(ImageListingRefusals, ShowsAWideTreeInAFewWords) {
  Paths paths = {"0.jpg"};
  for (int i = 100; i < 109; ++i) {
    for (int j = 0; j < i - 98; ++j) paths.push_back("c" + std::to_string(i) + "/" + std::to_string(j) + ".jpg");
  }
  EXPECT_THAT(error_of_listing(paths),
              HasSubstr("; found {1 image, c100/ 2 images, c101/ 3 images, c102/ 4 images, c103/ 5 "
                        "images, 5 more folders with 40 images} |"));
  EXPECT_THAT(error_of_listing({"1.jpg", "a/b/x/1.jpg", "a/b/y/p/1.jpg", "a/b/y/q/r/1.jpg", "a/b/y/q/s/t/1.jpg",
                                "a/b/y/q/s/u/1.jpg"}),
              HasSubstr("{1 image, a/b/{x/ 1 image, y/{p/ 1 image, q/{r/ 1 image, s/ 2 images in 2 folders}}}}"));
}

TEST(ImageListingRefusals, EndsInATreeOfAnyDepth) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "d/";
  EXPECT_THAT(error_of_listing({deep + "1.jpg"}), HasSubstr("an image lies below more than 255 folders"));
}

}  // namespace
}  // namespace headrace::test
