#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/pipeline/sources/packing.h"
#include "headrace/tests/support/data.h"

namespace headrace::test {
namespace {

template <Packing kPacking>
struct ArchiveMaker {
  static constexpr std::uint64_t kRecords = kTrainImages;
  static constexpr bool kResident = kPacking != Packing::kPlain;

  ArchiveMaker() { write(); }
  std::filesystem::path root() const { return folder_ / "images"; }
  std::vector<std::filesystem::path> files() const { return {root()}; }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return image_archive(path); }
  void change() {
    images_["train/dog/2.jpg"].push_back(std::byte{0});
    write();
  }

 private:
  void write() { folder_.write("images", pack(pack_images(images_).finish(), kPacking)); }

  TempFolder folder_;
  std::map<std::string, Bytes> images_ = make_image_files();
};

using PlainMaker = ArchiveMaker<Packing::kPlain>;
using GzipMaker = ArchiveMaker<Packing::kGzip>;
using ZstdMaker = ArchiveMaker<Packing::kZstd>;
using ArchiveMakers = ::testing::Types<PlainMaker, GzipMaker, ZstdMaker>;
INSTANTIATE_TYPED_TEST_SUITE_P(Archive, SourceSuite, ArchiveMakers);
INSTANTIATE_TYPED_TEST_SUITE_P(Archive, FileSourceSuite, ArchiveMakers);

class ImageArchiveTest : public ::testing::TestWithParam<Packing> {
 protected:
  std::filesystem::path write(const Bytes& tar) const { return folder_.write("a.tar", pack(tar, GetParam())); }

  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(All, ImageArchiveTest, ::testing::Values(Packing::kPlain, Packing::kGzip, Packing::kZstd),
                         packing_name);

TEST_P(ImageArchiveTest, GivesTheFilesInTheOrderOfTheirPaths) {
  const auto files = make_image_files();
  const auto path = write(pack_images(files).finish());
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const SourcePtr source = image_archive(path, {.split = split});
    EXPECT_THAT(source->info().classes, ElementsAre("cat", "dog", "emu"));
    EXPECT_EQ(source->info().fields[0].encoding, Encoding::kImage);
    ASSERT_EQ(source->info().records, split == Split::kTrain ? kTrainImages : kTestImages);
    std::vector<std::byte> scratch;
    for (std::uint64_t i = 0; i < source->info().records; ++i) {
      EXPECT_EQ(to_bytes(source->read(i, scratch).fields[0]), files.at(source->describe(i)));
      EXPECT_EQ(label_of(*source, i), static_cast<std::int64_t>(i / (source->info().records / 3)));
      if (i > 0) {
        EXPECT_LT(source->describe(i - 1), source->describe(i));
      }
    }
  }
}

TEST_P(ImageArchiveTest, IsTheSameBelowAnyNumberOfFolders) {
  TarBuilder deep;
  for (const auto& [name, bytes] : make_image_files()) deep.add("a/b/c/" + name, bytes);
  const auto path = write(deep.finish());
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const SourcePtr source = image_archive(path, {.split = split});
    EXPECT_THAT(source->info().classes, ElementsAre("cat", "dog", "emu"));
    ASSERT_EQ(source->info().records, split == Split::kTrain ? kTrainImages : kTestImages);
    for (std::uint64_t i = 0; i < source->info().records; ++i) {
      EXPECT_EQ(label_of(*source, i), static_cast<std::int64_t>(i / (source->info().records / 3)));
      EXPECT_EQ(source->label(i), label_of(*source, i));
      EXPECT_NE(source->offset(i), DataLocation::kUnknown);
    }
  }
}

TEST_P(ImageArchiveTest, CountsWhatItLeavesOut) {
  TarBuilder tar = pack_images(make_image_files());
  const auto path = write(tar.add("train/cat/x.webp", to_bytes("x")).finish());
  EXPECT_EQ(describe(image_archive(path)->info().left_out),
            "1 file left out: 1 .webp; Headrace reads JPEG and PNG");
}

TEST_P(ImageArchiveTest, DoesNotDependOnTheOrderOfPacking) {
  const auto files = make_image_files();
  TarBuilder forwards;
  for (const auto& [name, bytes] : files) forwards.add(name, bytes);
  const std::uint64_t one = image_archive(write(pack_images(files).finish()))->info().fingerprint;
  EXPECT_EQ(image_archive(write(forwards.finish()))->info().fingerprint, one);
}

TEST_P(ImageArchiveTest, AClassMayBeCalledTestWhereTheUserSaysSo) {
  const Bytes image = encode_jpeg(make_picture(8, 8, 3, 1));
  const auto path = write(TarBuilder().add("test/1.jpg", image).add("aim/1.jpg", image).finish());
  EXPECT_THROW(image_archive(path), ConfigError);
  const SourcePtr source = image_archive(path, {.layout = {.classes_at = "1"}});
  EXPECT_THAT(source->info().classes, ElementsAre("aim", "test"));
  std::vector<std::byte> scratch;
  EXPECT_EQ(to_bytes(source->read(1, scratch).fields[0]), image);
}

TEST_P(ImageArchiveTest, KeepsAnEmptyFileAsARecord) {
  const SourcePtr source =
      image_archive(write(TarBuilder().add("a/1.jpg", {}).add("b/2.jpg", to_bytes("x")).finish()));
  std::vector<std::byte> scratch;
  EXPECT_TRUE(source->read(0, scratch).fields[0].empty());
  EXPECT_EQ(source->read(1, scratch).fields[0].size(), 1U);
}

TEST_P(ImageArchiveTest, EveryTruncationIsAnErrorWithItsPlace) {
  const Bytes packed =
      pack(TarBuilder().add("a/1.jpg", to_bytes("hello")).add("b/1.jpg", to_bytes("world")).finish(), GetParam());
  // The last block of zeros of a plain archive is no loss.
  const std::size_t end = GetParam() == Packing::kPlain ? packed.size() - 1024 : packed.size();
  const auto path = folder_.write("a.tar", packed);
  for (std::size_t size = end; size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const DataError error = error_of<DataError>([&] { image_archive(path); });
    EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
    EXPECT_EQ(error.location().source, path.string());
    EXPECT_LE(error.location().offset, size);
  }
}

TEST_P(ImageArchiveTest, NoFlippedByteOfTheContainerDoesMoreThanItMay) {
  Bytes image(3000);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::byte>(i * i >> 3);
  const Bytes packed = pack(TarBuilder().add("a/1.jpg", image).add("b/1.jpg", to_bytes("x")).finish(), GetParam());
  const auto path = folder_.write("a.tar", packed);
  std::size_t found = 0, unnoticed = 0;
  for (std::size_t at = 0; at < packed.size(); at += 3) {
    TempFolder::patch(path, at, packed[at] ^ std::byte{0x10});
    try {
      const SourcePtr source = image_archive(path);
      std::vector<std::byte> scratch;
      unnoticed += to_bytes(source->read(0, scratch).fields[0]) != image ? 1 : 0;
    } catch (const Error&) {
      ++found;
    }
    TempFolder::patch(path, at, packed[at]);
  }
  EXPECT_GT(found, 0U);
  // A tar archive and a zstd frame without a checksum cannot show damage within an image: that is the decoder's
  // part.
  if (GetParam() == Packing::kGzip) {
    EXPECT_EQ(unnoticed, 0U);
  }
}

std::string refusal_of_archive(const std::filesystem::path& path) {
  try {
    image_archive(path);
  } catch (const DataError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    return error.what();
  }
  return "no error";
}

TEST_P(ImageArchiveTest, RefusesLinksToNoFile) {
  for (const char* target : {"", "3.jpg", "../b", "../a"}) {
    TarBuilder tar;
    tar.add("a/1.jpg", to_bytes("x")).add_folder("b").add_link("a/2.jpg", target).add_link("notes");
    EXPECT_THAT(refusal_of_archive(write(tar.finish())), HasSubstr("'a/2.jpg' is a link")) << target;
  }
}

// Also where that comes later, and over others; those out of the archive are left out, and said.
TEST_P(ImageArchiveTest, ASymbolicLinkIsTheFileOfTheArchiveThatItLeadsTo) {
  TarBuilder tar;
  tar.add_link("a/0.jpg", "../b/1.jpg").add("a/1.jpg", to_bytes("one")).add_link("a/2.jpg", "./1.jpg");
  tar.add("b/1.jpg", to_bytes("two")).add_link("b/2.jpg", "../a/2.jpg").add_hard_link("b/3.jpg", "b/1.jpg");
  tar.add_link("b/4.jpg", "/b/1.jpg").add_link("b/5.jpg", "../../b/1.jpg").add_link("b/6.jpg", "5.jpg");
  tar.add("c/1.jpg", to_bytes("three"));
  const SourcePtr source = image_archive(write(tar.finish()));
  std::vector<std::string> found;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < source->info().records; ++i) {
    const Bytes image = to_bytes(source->read(i, scratch).fields[0]);
    found.push_back(source->describe(i) + " " +
                    std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  }
  EXPECT_THAT(found, ElementsAre("a/0.jpg two", "a/1.jpg one", "a/2.jpg one", "b/1.jpg two", "b/2.jpg one",
                                 "b/3.jpg two", "c/1.jpg three"));
  EXPECT_EQ(describe(source->info().left_out), "3 files left out: 3 symbolic links out of the archive");
  tar.add_link("c/2.jpg", "3.jpg").add_link("c/3.jpg", "../c/2.jpg");
  EXPECT_THAT(refusal_of_archive(write(tar.finish())), HasSubstr("'c/2.jpg' is a link that leads in a circle"));
}

TEST_P(ImageArchiveTest, RefusesNamesThatLeadOut) {
  for (const char* name : {"../a/2.jpg", "a/../../2.jpg"}) {
    EXPECT_THROW(
        image_archive(write(TarBuilder().add("a/1.jpg", to_bytes("x")).add(name, to_bytes("x")).finish())),
        DataError);
  }
}

TEST_P(ImageArchiveTest, AnEmptyFolderIsAClass) {
  TarBuilder tar;
  tar.add_folder("b").add_folder("a/").add("a/1.jpg", to_bytes("x")).add("c/2.jpg", to_bytes("x"));
  EXPECT_EQ(image_archive(write(tar.finish()))->info().classes, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_P(ImageArchiveTest, SaysWhatItFoundInsteadOfImages) {
  const auto path = write(TarBuilder().add("a/notes.txt", to_bytes("x")).finish());
  EXPECT_THAT(error_of<DataError>([&] { image_archive(path); }).what(), HasSubstr("a/notes.txt"));
}

TEST(PackedArchiveTest, KeepsToItsMemoryLimit) {
  TempFolder folder;
  const Bytes image(1000, std::byte{1});
  const auto path =
      folder.write("a.tar.zst", zstd(TarBuilder().add("a/1.jpg", image).add("b/2.jpg", image).finish()));
  EXPECT_EQ(image_archive(path, {.memory_limit = 2000})->info().records, 2U);
  const DataError error = error_of<DataError>([&] { image_archive(path, {.memory_limit = 1999}); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.hint(), HasSubstr("plain .tar"));
}

TEST(PackedArchiveTest, ReadsCifar10) {
  const auto path = shared_data("cifar10-jpeg.tar.zst");
  if (!path) GTEST_SKIP() << "no CIFAR-10 here: set HEADRACE_DATA";
  const Stopwatch watch;
  const SourcePtr train = image_archive(*path), test = image_archive(*path, {.split = Split::kTest});
  RecordProperty("open_both_seconds", std::to_string(watch.seconds()));
  EXPECT_EQ(train->info().records, 50000U);
  EXPECT_EQ(test->info().records, 10000U);
  EXPECT_EQ(train->info().classes.size(), 10U);
  EXPECT_EQ(train->info().classes, test->info().classes);
  ImageDecoder decoder;
  std::vector<std::byte> scratch;
  std::vector<std::uint8_t> pixels(32 * 32 * 3);
  for (std::uint64_t i = 0; i < 50000; i += 997) {
    EXPECT_EQ(label_of(*train, i), static_cast<std::int64_t>(i / 5000));
    decoder.decode(train->read(i, scratch).fields[0], pixels);
  }
}

TEST(TarImagesTest, ReadsTheImagenetSample) {
  const auto path = shared_data("imagenet-sample-700.tar");
  if (!path) GTEST_SKIP() << "no ImageNet sample here: set HEADRACE_DATA";
  const SourcePtr source = image_archive(*path);
  ASSERT_EQ(source->info().records, 700U);
  EXPECT_EQ(source->info().classes.size(), 700U);
  EXPECT_FALSE(source->info().resident);
  EXPECT_THROW(image_archive(*path, {.split = Split::kTest}), ConfigError);
  ImageDecoder decoder;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < 700; ++i) {
    EXPECT_EQ(label_of(*source, i), static_cast<std::int64_t>(i));
    EXPECT_EQ(source->describe(i).find(source->info().classes[i] + "_"), 0U);
    EXPECT_GT(decoder.read_size(source->read(i, scratch).fields[0]).width, 50);
  }
}

// Images of two classes with text, JSON and a mask beside each, as they may lie in a tar.
std::map<std::string, Bytes> images_with_sidecars() {
  std::map<std::string, Bytes> files;
  for (const std::string name : {"cat/1", "cat/2", "dog/1"}) {
    files[name + ".jpg"] = encode_jpeg(make_picture(6, 7, 3, name[0]));
    files[name + ".seg.png"] = encode_png(make_picture(6, 7, 1, name[0]));
    files[name + ".txt"] = to_bytes("a " + name);
    files[name + ".json"] = to_bytes("{\"size\": [" + name.substr(4) + ", 0.5]}");
  }
  return files;
}

const std::vector<std::string> kSidecars = {"txt", "seg.png:mask", "size=json.size"};

TEST_P(ImageArchiveTest, TakesFilesBesideImagesAlong) {
  const auto files = images_with_sidecars();
  const auto path = write(pack_images(files).finish());
  const SourcePtr source = image_archive(path, {.columns = kSidecars});
  ASSERT_EQ(source->info().records, 3U) << "a mask is no image of its own";
  EXPECT_THAT(source->info().classes, ElementsAre("cat", "dog"));
  ASSERT_EQ(source->info().fields.size(), 5U);
  EXPECT_EQ(source->info().fields[4], (Field{.name = "size", .dtype = DType::kF32, .shape = {2}}));
  std::vector<std::byte> scratch;
  EXPECT_EQ(label_of(*source, 2), 1);
  const RecordView view = source->read(2, scratch);
  EXPECT_EQ(to_bytes(view.fields[0]), files.at("dog/1.jpg"));
  EXPECT_EQ(to_bytes(view.fields[2]), files.at("dog/1.txt"));
  EXPECT_EQ(to_bytes(view.fields[3]), files.at("dog/1.seg.png"));
  float size[2] = {};
  std::memcpy(size, view.fields[4].data(), sizeof size);
  EXPECT_EQ(size[1], 0.5F);
  EXPECT_EQ(source->info().columns.size(), 3U);
  EXPECT_NE(source->info().fingerprint, image_archive(path, {.columns = {"txt"}})->info().fingerprint);
  EXPECT_EQ(image_archive(path)->info().records, 6U) << "without them, masks are images as before";
}

TEST_P(ImageArchiveTest, AnImageWithoutItsFileIsABadRecord) {
  auto files = images_with_sidecars();
  files.erase("cat/2.txt");
  files["dog/1.json"] = to_bytes("{\"other\": 3}");
  const SourcePtr source = image_archive(write(pack_images(files).finish()), {.columns = kSidecars});
  std::vector<std::byte> scratch;
  EXPECT_NO_THROW(source->read(0, scratch));
  for (const auto& [record, words] : {std::pair{1, "cat/2.jpg: its file 'cat/2.txt' is missing"},
                                      std::pair{2, "dog/1.jpg: member 'json' has no value 'size'"}}) {
    const DataError error =
        error_of<DataError>([&] { source->read(static_cast<std::uint64_t>(record), scratch); });
    EXPECT_THAT(error.what(), HasSubstr(words));
    EXPECT_EQ(error.location().record, static_cast<std::uint64_t>(record));
  }
}

TEST_P(ImageArchiveTest, FoldersOfClassesThatAreNamedMakeItNoWebDataset) {
  const auto path = write(pack_images(images_with_sidecars()).finish());
  const ColumnOptions columns{.columns = kSidecars};
  const SourcePtr source =
      open_source(path, Split::kTrain, {.layout = {.classes_at = "parent"}, .columns = columns});
  EXPECT_THAT(source->info().classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(source->info().fields.size(), 5U);
  EXPECT_EQ(open_source(path, Split::kTrain, {.columns = columns})->info().fields.size(), 4U)
      << "samples of a WebDataset, without a label";
  EXPECT_THROW(open_source(path, Split::kTrain,
                           {.layout = {.classes_at = "parent"}, .columns = {.label_column = "json.size"}}),
               ConfigError);
}

TEST_P(ImageArchiveTest, PairsFilesOfOtherFoldersByTheirNames) {
  std::map<std::string, Bytes> files;
  for (const std::string name : {"1", "10", "2"}) {
    files["images/" + name + ".jpg"] = encode_jpeg(make_picture(4, 4, 3, 1));
    if (name != "2") files["masks/" + name + "_mask.png"] = to_bytes("mask of " + name);
  }
  const SourcePtr source =
      open_source(write(pack_images(files).finish()), Split::kTrain,
                  {.layout = {.classes_at = "none"}, .columns = {.columns = {"mask=masks/{stem}_mask.png:mask"}}});
  ASSERT_EQ(source->info().records, 3U);
  std::vector<std::byte> scratch;
  EXPECT_EQ(to_bytes(source->read(1, scratch).fields[2]), to_bytes("mask of 10"));
  EXPECT_THAT(error_of<DataError>([&] { source->read(2, scratch); }).what(),
              HasSubstr("images/2.jpg: its file 'masks/2_mask.png' is missing"));
}

}  // namespace
}  // namespace headrace::test
