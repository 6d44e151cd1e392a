#include "headrace/devices/base/did_you_mean.h"

#include <gtest/gtest.h>

#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

TEST(DidYouMean, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("train", "train"), 0);
  EXPECT_EQ(edit_distance("Train", "train"), 0) << "upper and lower case are alike";
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("trian", "train"), 1) << "two letters swapped";
  EXPECT_EQ(edit_distance("trin", "train"), 1);
  EXPECT_EQ(edit_distance("traain", "train"), 1);
  EXPECT_EQ(edit_distance("brain", "train"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(DidYouMean, TakesTheNearest) {
  const std::vector<std::string> names{"cifar10-cnn", "cifar10-fast", "cifar10-fast-b", "mnist-mlp"};
  EXPECT_EQ(nearest("cifar10-fats", names), "cifar10-fast");
  EXPECT_EQ(nearest("cifar10-fastb", names), "cifar10-fast") << "the first among equals";
  EXPECT_EQ(nearest("mnist", names), "mnist-mlp") << "the beginning of a name";
  EXPECT_EQ(nearest("mlp-mnist", names), "");
  EXPECT_EQ(nearest("alchemy", names), "");
  EXPECT_EQ(nearest("x", {"-h", "y"}), "y") << "one letter may differ";
  EXPECT_EQ(nearest("train", {}), "");
}

TEST(DidYouMean, IsAQuestionOrNothing) {
  EXPECT_EQ(did_you_mean("trian", {"digest", "train"}), ": did you mean 'train'?");
  EXPECT_EQ(did_you_mean("alchemy", {"digest", "train"}), "");
}

TEST(DidYouMean, LooksAtWhatIsThere) {
  const test::TempFolder folder;
  folder.write("photos/train/cat/0.jpg", "x");
  const std::string root = folder.path().string();
  EXPECT_EQ(did_you_mean_path(root + "/fotos"), ": did you mean '" + root + "/photos'?");
  EXPECT_EQ(did_you_mean_path(root + "/photo/train"), ": did you mean '" + root + "/photos/train'?");
  EXPECT_EQ(did_you_mean_path(root + "/photo/tests"), ": did you mean '" + root + "/photos'?");
  EXPECT_EQ(did_you_mean_path(root + "/photos/tarin/cat"), ": did you mean '" + root + "/photos/train/cat'?");
  EXPECT_EQ(did_you_mean_path(root + "/alchemy"), "");
  EXPECT_EQ(did_you_mean_path(root + "/photos"), "") << "is there";
  EXPECT_EQ(did_you_mean_path(""), "");
}

}  // namespace
}  // namespace headrace
