#include <gmock/gmock.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/sources/idx_fixture.h"
#include "headrace/tests/pipeline/sources/image_fixture.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::filesystem::path& path) {
  try {
    open_source(path, Split::kTrain);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(OpenSourceTest, RecognisesWhatLiesThere) {
  TempFolder idx, cifar, images;
  idx.write("train-images-idx3-ubyte.gz", gzip(make_idx({5, 2, 2})));
  idx.write("train-labels-idx1-ubyte.gz", gzip(make_idx({5})));
  for (int i = 1; i <= 5; ++i) cifar.write("data_batch_" + std::to_string(i) + ".bin", Bytes(3073));
  for (const auto& [name, bytes] : make_image_files()) images.write(name, bytes);
  const Bytes tar = pack_images(make_image_files()).finish();
  EXPECT_EQ(open_source(idx.path(), Split::kTrain)->info().fields[0].shape, (Shape{2, 2, 1}));
  EXPECT_EQ(open_source(cifar.path(), Split::kTrain)->info().fields[0].shape, (Shape{32, 32, 3}));
  EXPECT_EQ(open_source(images.path(), Split::kTest)->info().records, kTestImages);
  // By content: names mean nothing.
  EXPECT_EQ(open_source(idx.write("one", tar), Split::kTrain)->info().records, kTrainImages);
  EXPECT_EQ(open_source(idx.write("two.tar", gzip(tar)), Split::kTrain)->info().records, kTrainImages);
  EXPECT_EQ(open_source(idx.write("three.tgz", zstd(tar)), Split::kTrain)->info().records, kTrainImages);
}

TEST(OpenSourceTest, SaysWhatItFoundAndWhatItUnderstands) {
  TempFolder folder;
  EXPECT_THAT(error_of(folder / "nothing"), HasSubstr("there is no such file or folder"));
  EXPECT_THAT(error_of(folder / "nothing"), HasSubstr("idx"));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("it is empty"));
  EXPECT_THAT(error_of(folder.write("a.jpg", encode_jpeg(make_picture(64, 64, 3, 1)))),
              HasSubstr("no tar archive"));
  EXPECT_THAT(error_of(folder.write("b", "")), HasSubstr("is empty"));
  EXPECT_THAT(error_of("/dev/null"), HasSubstr("neither a file nor a folder"));
}

TEST(ParseSplitTest, KnowsTwoNames) {
  EXPECT_EQ(parse_split("train"), Split::kTrain);
  EXPECT_EQ(parse_split("test"), Split::kTest);
  EXPECT_THROW(parse_split("Train"), ConfigError);
}

}  // namespace
}  // namespace headrace::test
