#include "headrace/pipeline/dataset.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/packing.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

std::string key(std::size_t i) { return "part/00" + std::to_string(i); }

// Samples first ... first + 2: two labelled by .cls, one by .json, with other members among them.
TarBuilder make_shard(std::size_t first, std::size_t extra = 0) {
  TarBuilder tar;
  for (std::size_t i = first; i < first + 3; ++i) {
    Bytes image = i % 2 == 0 ? encode_jpeg(make_picture(8, 9, 3, i)) : encode_png(make_picture(8, 9, 3, i));
    image.resize(image.size() + extra);
    const std::string label = std::to_string(i * 11);
    if (i % 3 == 2) tar.add(key(i) + ".json", to_bytes("{\"text\": [1, {}], \"label\": " + label + "}"));
    tar.add(key(i) + (i % 2 == 0 ? ".jpg" : ".PNG"), image);
    if (i % 3 != 2) tar.add(key(i) + ".cls", to_bytes(label + "\n"));
    tar.add(key(i) + ".txt", to_bytes("a caption"));
  }
  return tar;
}

template <Packing kPacking>
struct WebMaker {
  static constexpr std::uint64_t kRecords = 9;
  static constexpr bool kResident = kPacking != Packing::kPlain;

  WebMaker() {
    for (std::size_t i = 0; i < 3; ++i) write(i, 0);
  }
  const TempFolder& folder() const { return folder_; }
  std::filesystem::path root() const { return folder_ / "shards"; }
  std::vector<std::filesystem::path> files() const { return {file(0), file(1), file(2)}; }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return web_dataset(path); }
  void change() { write(1, 1); }

 private:
  std::filesystem::path file(std::size_t i) const { return folder_ / ("shards/" + std::to_string(i) + ".tar"); }
  void write(std::size_t i, std::size_t extra) {
    folder_.write("shards/" + std::to_string(i) + ".tar", pack(make_shard(3 * i, extra).finish(), kPacking));
  }

  TempFolder folder_;
};

using WebPlainMaker = WebMaker<Packing::kPlain>;
using WebGzipMaker = WebMaker<Packing::kGzip>;
using WebZstdMaker = WebMaker<Packing::kZstd>;
using WebMakers = ::testing::Types<WebPlainMaker, WebGzipMaker, WebZstdMaker>;
INSTANTIATE_TYPED_TEST_SUITE_P(WebDataset, SourceSuite, WebMakers);
INSTANTIATE_TYPED_TEST_SUITE_P(WebDataset, FileSourceSuite, WebMakers);

std::string error_of_web_dataset(const Bytes& tar) {
  const TempFolder folder;
  for (const Packing packing : {Packing::kPlain, Packing::kZstd}) {
    try {
      web_dataset(folder.write("a.tar", pack(tar, packing)));
      return "no error";
    } catch (const DataError& error) {
      EXPECT_THAT(error.location().source, HasSubstr("a.tar"));
      if (packing == Packing::kZstd) return error.what();
    }
  }
  return {};
}

TEST(WebDatasetTest, PairsImagesAndLabels) {
  const WebPlainMaker maker;
  const SourcePtr source = maker.open();
  EXPECT_EQ(source->info().file_ends, (std::vector<std::uint64_t>{3, 6, 9}));
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(label_of(*source, i), static_cast<std::int64_t>(i * 11));
    const auto picture = make_picture(8, 9, 3, i);
    EXPECT_EQ(to_bytes(source->read(i, scratch).fields[0]),
              i % 2 == 0 ? encode_jpeg(picture) : encode_png(picture));
    EXPECT_EQ(source->describe(i), std::to_string(i / 3) + ".tar/" + key(i) + (i % 2 == 0 ? ".jpg" : ".PNG"));
  }
  EXPECT_EQ(web_dataset(maker.root() / "1.tar")->describe(0), key(3) + ".PNG");
}

TEST(WebDatasetTest, IsRecognised) {
  const WebPlainMaker plain;
  const WebZstdMaker packed;
  EXPECT_EQ(open_source(plain.root(), Split::kTrain)->info().records, 9U);
  EXPECT_EQ(open_source(packed.root() / "2.tar", Split::kTrain)->info().records, 3U);
  EXPECT_THROW(open_source(plain.root(), Split::kTest), ConfigError);
}

TEST(WebDatasetTest, TakesTheShardsOfASplit) {
  const TempFolder folder;
  folder.write("train-0.tar", make_shard(0).finish());
  folder.write("train-1.tar", make_shard(3).finish());
  folder.write("val-0.tar", make_shard(6).finish());
  EXPECT_EQ(open_source(folder.path(), Split::kTrain)->info().records, 6U);
  EXPECT_EQ(label_of(*open_source(folder.path(), Split::kTest), 0), 66);
}

// What read() says of the record whose sample this is, beside one that is whole.
std::string fault_of(TarBuilder tar, const std::string& name) {
  const TempFolder folder;
  tar.add("good.png", encode_png(make_picture(4, 4, 3, 1))).add("good.cls", to_bytes("7"));
  std::string said[2];
  for (const Packing packing : {Packing::kPlain, Packing::kZstd}) {
    const SourcePtr source = web_dataset(folder.write("a.tar", pack(tar.finish(), packing)));
    EXPECT_EQ(source->info().records, 2U);
    EXPECT_EQ(source->describe(0), name);
    EXPECT_EQ(source->label(0), std::nullopt);
    EXPECT_EQ(label_of(*source, 1), 7) << "the others are as they were";
    std::vector<std::byte> scratch;
    try {
      source->read(0, scratch);
    } catch (const DataError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
      EXPECT_THAT(error.location().source, HasSubstr("a.tar"));
      EXPECT_EQ(error.location().record, 0U);
      EXPECT_EQ(error.location().offset, 512U);
      said[packing == Packing::kPlain ? 0 : 1] = error.message();
    }
  }
  EXPECT_EQ(said[0], said[1]);
  return said[0].substr(said[0].find(": ") + 2);
}

TEST(WebDatasetTest, ASampleWithoutItsImageOrLabelIsABadRecord) {
  const Bytes image = encode_png(make_picture(4, 4, 3, 1));
  const auto with = [&](const std::string& name, const std::string& text) {
    return fault_of(TarBuilder().add("x.png", image).add(name, to_bytes(text)), "x.png");
  };
  const std::string at = ", record 0, byte offset 512";
  EXPECT_EQ(with("x.cls", "seven"), "'x.cls' is no decimal number" + at);
  EXPECT_EQ(with("x.cls", ""), "'x.cls' is no decimal number" + at);
  EXPECT_EQ(with("x.cls", "99999999999999999999"), "'x.cls' is no decimal number" + at);
  EXPECT_EQ(with("x.cls", std::string(65, '1')), "'x.cls' has 65 bytes: no label" + at);
  EXPECT_EQ(with("x.json", "{\"label\": 1.5}"), "'x.json' has no integer \"label\"" + at);
  EXPECT_EQ(with("x.json", "{\"label\": 18446744073709551615}"), "'x.json' has no integer \"label\"" + at);
  EXPECT_EQ(with("x.json", "{\"label\": 1"), "'x.json' has no integer \"label\"" + at);
  EXPECT_EQ(with("x.json", std::string(100'000, '[')), "'x.json' has no integer \"label\"" + at);
  EXPECT_EQ(with("x.txt", "1"), "'x.png' has no label: no x.cls" + at);
  EXPECT_EQ(with("x.jpg", "1"), "'x.jpg' is a second image beside 'x.png'" + at);
  EXPECT_EQ(fault_of(TarBuilder().add("z.cls", to_bytes("1")), "z"), "sample 'z' has a label and no image" + at);
  EXPECT_EQ(
      fault_of(TarBuilder().add("x.png", image).add("x.cls", to_bytes("1")).add("x.cls", to_bytes("1")), "x.png"),
      "'x.cls' is a second label of its sample" + at);
}

TEST(WebDatasetTest, ReadsNumbersAsTheyAreWritten) {
  const Bytes image = encode_png(make_picture(4, 4, 3, 1));
  const std::pair<const char*, const char*> labels[] = {
      {"x.cls", "3.0"},
      {"x.cls", " +3\r\n"},
      {"x.cls", "3e0"},
      {"x.json", "{\"label\": 3.0}"},
      {"x.json", "{\"score\": NaN, \"label\": 3}"},
      {"x.json", "{\"scores\": [Infinity, -Infinity], \"say\": \"NaN \\\" NaN\", \"label\": 3}"}};
  for (const auto& [name, text] : labels) {
    const TempFolder folder;
    const auto tar = folder.write("a.tar", TarBuilder().add("x.png", image).add(name, to_bytes(text)).finish());
    EXPECT_EQ(label_of(*open_source(tar, Split::kTrain), 0), 3) << text;
  }
}

TEST(WebDatasetTest, ALabelMayBeALink) {
  const Bytes image = encode_png(make_picture(4, 4, 3, 1));
  TarBuilder tar;
  tar.add_link("4.cls", "0.cls").add("4.png", image).add("6.png", image).add_link("6.cls", "5/../2.cls");
  tar.add_link("notes.txt", "../notes.txt");
  tar.add("0.png", image).add("0.cls", to_bytes("4")).add("1.png", image).add_hard_link("1.cls", "0.cls");
  tar.add("2.cls", to_bytes("5")).add("2.png", image).add("3.png", image).add_hard_link("3.cls", "./2.cls");
  const TempFolder folder;
  for (const Packing packing : {Packing::kPlain, Packing::kGzip, Packing::kZstd}) {
    const SourcePtr source = open_source(folder.write("a.tar", pack(tar.finish(), packing)), Split::kTrain);
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < source->info().records; ++i) labels.push_back(label_of(*source, i));
    EXPECT_THAT(labels, ElementsAre(4, 5, 4, 4, 5, 5));
    EXPECT_THAT(source->info().left_out,
                ElementsAre(LeftOut{.what = "symbolic links out of the archive", .files = 1}));
  }
}

// What an archive is does not depend on the order of its members, nor on how many a sample has.
TEST(WebDatasetTest, IsRecognisedWhereverItsLabelsStand) {
  const TempFolder folder;
  TarBuilder unsorted, wide;
  ZipBuilder zip;
  for (const char* extension : {".png", ".cls"}) {
    for (int i = 0; i < 18; ++i) {
      const std::string name = "p" + std::to_string(i % 2) + "/" + std::to_string(i) + extension;
      const Bytes bytes = extension[1] == 'p' ? encode_png(make_picture(4, 4, 3, 1)) : to_bytes("4");
      unsorted.add(name, bytes);
      zip.add(name, bytes);
    }
  }
  for (int i = 0; i < 4; ++i) {
    const std::string at = "p" + std::to_string(i % 2) + "/" + std::to_string(i);
    for (int k = 0; k < 20; ++k) wide.add(at + ".f" + std::to_string(k), to_bytes("x"));
    wide.add(at + ".json", to_bytes("{\"label\": 4}")).add(at + ".png", encode_png(make_picture(4, 4, 3, 1)));
  }
  for (const auto& file :
       {folder.write("unsorted.tar", unsorted.finish()), folder.write("a.zip", zip.finish()),
        folder.write("unsorted.tar.gz", gzip(unsorted.finish())), folder.write("wide.tar", wide.finish())}) {
    const OpenedSource opened = recognise_source(file, Split::kTrain);
    EXPECT_EQ(opened.format, "a WebDataset archive") << file;
    for (std::uint64_t i = 0; i < opened.source->info().records; ++i) EXPECT_EQ(label_of(*opened.source, i), 4);
    EXPECT_EQ(open_source(file, Split::kTrain, {.layout = {.classes_at = "parent"}})->info().classes.size(), 2U);
  }
  // Labels of some images alone: two readings, and the options that say which.
  TarBuilder some = unsorted;
  for (int i = 0; i < 20; ++i) some.add("p1/x" + std::to_string(i) + ".png", encode_png(make_picture(4, 4, 3, 1)));
  const auto file = folder.write("some.tar", some.finish());
  const ConfigError error = error_of<ConfigError>([&] { open_source(file, Split::kTrain); });
  EXPECT_THAT(error.what(), HasSubstr("18 of 38 images have a label of WebDataset beside them"));
  EXPECT_THAT(error.hint(), HasSubstr("classes_at = parent"));
  EXPECT_EQ(open_source(file, Split::kTrain, {.columns = {.label_column = "cls"}})->info().records, 38U);
  folder.write("unpacked/p0/0.png", encode_png(make_picture(4, 4, 3, 1)));
  folder.write("unpacked/p1/0.png", encode_png(make_picture(4, 4, 3, 1)));
  folder.write("unpacked/p1/0.cls", "4");
  EXPECT_THROW(open_source(folder / "unpacked", Split::kTrain), ConfigError);
}

TEST(WebDatasetTest, WithoutOneGoodSampleIsNone) {
  const Bytes image = encode_png(make_picture(4, 4, 3, 1));
  EXPECT_THAT(error_of_web_dataset(TarBuilder().add("x.png", image).add("y.png", image).finish()),
              HasSubstr("none of its 2 samples can be used; the first: 'x.png' has no label: no x.cls"));
  EXPECT_THAT(error_of_web_dataset(TarBuilder().add("z.txt", to_bytes("1")).finish()),
              HasSubstr("no sample in it"));
}

TEST(WebDatasetTest, EveryTruncationIsAnError) {
  const TempFolder folder;
  const Bytes whole = make_shard(0).finish();
  for (std::size_t size = 0; size + 1024 < whole.size(); size += 101) {
    const auto file = folder.write("a.tar", std::span(whole).first(size));
    EXPECT_THROW(web_dataset(file), DataError) << size;
  }
}

TEST(WebDatasetTest, KeepsToItsMemory) {
  const TempFolder folder;
  const auto file = folder.write("a.tar", gzip(make_shard(0).finish()));
  EXPECT_THROW(web_dataset(file, {.memory_limit = 300}), DataError);
}

TEST(ShardForWorkerTest, DealsOutFilesOrElements) {
  const WebPlainMaker maker;
  const Dataset dataset = Dataset::from(maker.open());
  const auto labels = [](const Dataset& part) {
    std::vector<std::int64_t> found;
    const Dataset numbered = zip({part, Dataset::from(numbers(part.size()))});
    DeviceGroup devices = test_devices(1);
    Loader loader(numbered.decode().map(center_crop(4)).batch({.global_batch = 2}), devices);
    while (const auto batch = loader.next()) {
      const auto values = download_examples<std::int64_t>(devices[0], *batch, "label");
      found.insert(found.end(), values.begin(), values.end());
    }
    return found;
  };
  EXPECT_EQ(labels(dataset.shard_for_worker({.count = 2, .index = 0})),
            (std::vector<std::int64_t>{0, 11, 22, 66, 77, 88}));
  EXPECT_EQ(labels(dataset.shard_for_worker({.count = 2, .index = 1})), (std::vector<std::int64_t>{33, 44, 55}));
  EXPECT_EQ(labels(dataset.shard_for_worker({.count = 4, .index = 1})), (std::vector<std::int64_t>{11, 55}));
  EXPECT_EQ(labels(dataset.shard_for_worker({.count = 2, .index = 1, .by = ShardBy::kElement})),
            (std::vector<std::int64_t>{11, 33, 55, 77}));
  EXPECT_THROW(dataset.shard_for_worker({.count = 4, .index = 0, .by = ShardBy::kFile}), ConfigError);
  EXPECT_THROW(dataset.shuffle().shard_for_worker({.count = 2, .index = 0, .by = ShardBy::kFile}), ConfigError);
  EXPECT_THROW(Dataset::from(numbers(5)).shard_for_worker({.count = 2, .index = 0, .by = ShardBy::kFile}),
               ConfigError);
  EXPECT_THROW(dataset.shard_for_worker({.count = 2, .index = 2}), ConfigError);
  expect_one_stream(dataset.shard_for_worker({.count = 2, .index = 0})
                        .shuffle()
                        .decode()
                        .map(center_crop(4))
                        .batch({.global_batch = 2}));
}

}  // namespace
}  // namespace headrace::test
