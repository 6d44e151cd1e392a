// What a path holds, by the table of formats.
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/formats.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::string error_of_opening(const std::filesystem::path& path) {
  return message_of<DataError>([&] { open_source(path, Split::kTrain); });
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
  EXPECT_EQ(open_source(idx.write("four", pzstd(tar, 5000)), Split::kTrain)->info().records, kTrainImages);
  EXPECT_EQ(open_source(idx.write("three.tgz", zstd(tar)), Split::kTrain)->info().records, kTrainImages);
}

TEST(OpenSourceTest, SaysWhatItFoundAndWhatItUnderstands) {
  TempFolder folder;
  EXPECT_THAT(error_of_opening(folder / "nothing"), HasSubstr("there is no such file or folder"));
  EXPECT_THAT(error_of_opening(folder / "nothing"), HasSubstr(accepted_formats()));
  EXPECT_THAT(error_of_opening(folder.path()), HasSubstr("it is empty"));
  EXPECT_THAT(error_of_opening(folder.write("a.jpg", encode_jpeg(make_picture(64, 64, 3, 1)))),
              AllOf(HasSubstr("is a single JPEG image, which is not read (not read are what xz,"),
                    HasSubstr("alone (name the folder or archive that holds it); Headrace reads:")));
  EXPECT_THAT(error_of_opening(folder.write("c", gzip(to_bytes("<!DOCTYPE html>")))),
              HasSubstr("is compressed, and unpacked it is a web page in place of the data, which is not read"));
  EXPECT_THAT(error_of_opening(folder.write("d", "PAR1\x15\x04")), HasSubstr("is a Parquet table"));
  EXPECT_THAT(error_of_opening(folder.write("e", make_idx({3, 4, 5}))), HasSubstr("is an IDX file of its own"));
  EXPECT_THAT(error_of_opening(folder.write("f", "\x01\x02 anything")),
              HasSubstr("is of no known format: it starts with the bytes 01 02 20 61 6E 79 74 68"));
  EXPECT_THAT(error_of_opening(folder.write("g", "a river\truns through it\nand on\n")),
              HasSubstr("is text of no known format: its first line is 'a river runs through it'"));
  EXPECT_THAT(
      error_of_opening(folder.write("h", "path,class\na.jpg,1\n")),
      HasSubstr(
          "is a table without the column label: its first line is 'path,class' (say with "
          "ColumnOptions::image_column and ColumnOptions::label_column which columns it has instead; Headrace "));
  EXPECT_THAT(
      error_of_opening(folder.write("i.csv", "file;class\n")),
      HasSubstr("is a table without the columns path and label: its first line is 'file;class' (separate the "
                "columns by commas; Headrace reads"));
  EXPECT_THAT(error_of_opening(folder / "i.cvs"),
              HasSubstr("there is no such file or folder: did you mean '" + (folder / "i.csv").string() + "'?"));
  EXPECT_THAT(error_of_opening(folder.write("b", "")), HasSubstr("is empty"));
  EXPECT_THAT(error_of_opening("/dev/null"), HasSubstr("neither a file nor a folder"));
}

// One list, in every error about what is not recognised.
TEST(OpenSourceTest, ListsTheFormatsItReads) {
  TempFolder folder;
  for (const char* format :
       {".tar.zst", ".zip", "WebDataset", "TFRecord", "IDX", "CIFAR", ".npz", ".csv", "headrace convert"}) {
    EXPECT_THAT(accepted_formats(), HasSubstr(format));
  }
  for (const auto& path : {folder.write("a", "GIF89a"), folder.write("b", "no data set"), folder.write("c", ""),
                           folder.write("d", "BZh91AY&SY"), folder / "nothing"}) {
    EXPECT_THAT(error_of_opening(path), HasSubstr(accepted_formats())) << path;
  }
}

TEST(OpenSourceTest, RefusesCifarsPickles) {
  const std::string ten =
      "holds CIFAR-10 as Python pickles, which are not read: use the binary version, "
      "cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html (unpack it, and name "
      "the folder with its .bin files)";
  TempFolder folder, hundred;
  const Bytes pickle = to_bytes("\x80\x02}q\x01");
  for (const char* name : {"data_batch_1", "data_batch_2", "test_batch", "batches.meta"})
    folder.write(name, pickle);
  for (const char* name : {"train", "test", "meta"}) hundred.write(name, pickle);
  EXPECT_THAT(error_of_opening(folder.path()), HasSubstr(ten));
  EXPECT_THAT(error_of_opening(hundred.path()), HasSubstr("use the binary version, cifar-100-binary.tar.gz"));
  const TarBuilder tar =
      TarBuilder().add_folder("cifar-10-batches-py").add("cifar-10-batches-py/data_batch_1", pickle);
  EXPECT_THAT(error_of_opening(folder.write("cifar-10-python.tar.gz", gzip(tar.finish()))), HasSubstr(ten));
  EXPECT_THAT(error_of_opening(folder.write("cifar-10-python.tar", tar.finish())), HasSubstr(ten));
  EXPECT_THAT(error_of_opening(folder / "data_batch_1"), HasSubstr("is a Python pickle, which is not read"));
}

TEST(ParseSplitTest, KnowsTwoNames) {
  EXPECT_EQ(parse_split("train"), Split::kTrain);
  EXPECT_EQ(parse_split("test"), Split::kTest);
  EXPECT_THROW(parse_split("Train"), ConfigError);
}

// The first form of the table that recognises the path.
std::string form_at(const std::filesystem::path& path, const SourceOptions& options = {}) {
  const FoundPath found(path, options);
  for (const SourceFormat& format : source_formats()) {
    for (const SourceForm& form : format.forms) {
      if (form.kind == found.kind() && form.recognise(found)) return form.name;
    }
  }
  return "nothing";
}

TEST(Formats, EachOpenerStandsInOneRow) {
  std::set<std::string> openers{source_origins().front()->name()};
  for (const SourceFormat& format : source_formats()) {
    EXPECT_FALSE(format.forms.empty()) << format.accepts;
    EXPECT_THAT(accepted_formats(), HasSubstr(format.accepts));
    for (const SourceOriginPtr& opener : format.openers) {
      EXPECT_TRUE(openers.insert(opener->name()).second) << opener->name();
      EXPECT_EQ(find_source_origin(opener->name()), opener);
    }
  }
  EXPECT_EQ(openers.size(), source_origins().size());
}

// What a folder is taken for does not depend on what else lies in it, but where that says more.
TEST(Formats, AFolderOfSeveralThingsIsWhatSaysMost) {
  TempFolder idx, archives, arrays, images, shards, classes;
  idx.write("train-images-idx3-ubyte", make_idx({5, 2, 2}));
  idx.write("a.npy", "");
  idx.write("a.tfrecord", "");
  EXPECT_EQ(form_at(idx.path()), "IDX files");
  archives.write("a.zip", "");
  archives.write("b.npy", "");
  EXPECT_EQ(form_at(archives.path()), "WebDataset archives");
  arrays.write("x.npy", "");
  arrays.write("README", "");
  EXPECT_EQ(form_at(arrays.path()), "NumPy arrays");
  for (const char* name : {"a.zip", "b.npy", "n01440764_1.JPEG"}) images.write(name, "");
  EXPECT_EQ(form_at(images.path()), "images in folders");
  images.write("c.tar", "");
  EXPECT_EQ(form_at(images.path()), "WebDataset archives");
  shards.write("a.tfrecord", "");
  shards.write("more/b.txt", "");
  shards.write("c.tar", "");
  EXPECT_EQ(form_at(shards.path()), "TFRecord files");
  classes.write("cat/1.jpg", "");
  classes.write("old.tfrecord", "");
  classes.write("old.tar", "");
  EXPECT_EQ(form_at(classes.path()), "images in folders");
}

TEST(Formats, AFileIsWhatItsContentSays) {
  TempFolder folder;
  const Bytes tar = pack_images(make_image_files()).finish();
  EXPECT_EQ(form_at(folder.write("a.npy", tar)), "images in the folders of an archive");
  EXPECT_EQ(form_at(folder.write("b", "path,label\n")), "a CSV table of images");
  EXPECT_EQ(form_at(folder.write("c.csv", "file,kind\n")), "nothing");
  EXPECT_EQ(form_at(folder / "c.csv", {.columns = {.image_column = "picture"}}), "a CSV table of images");
  EXPECT_EQ(form_at(folder.write("d.tfrecord", "no record")), "nothing");
  EXPECT_EQ(form_at(folder / "missing"), "nothing");
}

TEST(FindFieldTest, FindsByNameOrListsTheNames) {
  Fields fields(2);
  fields[0].name = "image";
  fields[1].name = "label";
  EXPECT_EQ(find_field(fields, "image"), 0U);
  EXPECT_EQ(find_field(fields, "label"), 1U);
  const ConfigError error = error_of<ConfigError>([&] { find_field(fields, "labels"); });
  EXPECT_THAT(error.what(), HasSubstr("'labels'"));
  EXPECT_THAT(error.hint(), HasSubstr("image, label"));
  EXPECT_THROW(find_field({}, "image"), ConfigError);
}

}  // namespace
}  // namespace headrace::test
