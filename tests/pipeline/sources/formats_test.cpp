#include "headrace/pipeline/sources/formats.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
