#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/pipeline/sources/source_suite.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

// Every field of every record, the classes, and the names of those that have one.
void expect_same_records(const std::filesystem::path& data, const std::filesystem::path& packed, Split split) {
  const SourcePtr before = open_source(data, split), after = open_source(packed, split);
  EXPECT_EQ(after->info().fields, before->info().fields);
  EXPECT_EQ(after->info().classes, before->info().classes);
  EXPECT_EQ(read_all(*after), read_all(*before));
  for (std::uint64_t i = 0; i < before->info().records; ++i) {
    const std::string name = before->describe(i);
    if (name.starts_with(before->info().name)) continue;  // only a number
    EXPECT_EQ(after->describe(i), name);
  }
}

template <typename Error>
std::string error_of_converting(const std::filesystem::path& data, const std::filesystem::path& to,
                                const ConvertOptions& options = {}) {
  return message_of<Error>([&] { convert_dataset(data, to, options); });
}

void write_idx(const TempFolder& folder) {
  folder.write("train-images-idx3-ubyte", make_idx({5, 4, 3}));
  folder.write("train-labels-idx1-ubyte", make_idx({5}));
  folder.write("t10k-images-idx3-ubyte.gz", gzip(make_idx({2, 4, 3}, 9)));
  folder.write("t10k-labels-idx1-ubyte", make_idx({2}, 3));
}

Bytes cifar_records(std::size_t count, int first) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<std::byte>(i % 10));
    for (std::size_t p = 0; p < 3072; ++p)
      bytes.push_back(static_cast<std::byte>(p + i * 5 + static_cast<std::size_t>(first)));
  }
  return bytes;
}

TEST(Convert, KeepsEveryKindOfDataAsItIs) {
  TempFolder idx, cifar, images, out;
  write_idx(idx);
  for (int i = 1; i <= 5; ++i) cifar.write("data_batch_" + std::to_string(i) + ".bin", cifar_records(2, i));
  cifar.write("test_batch.bin", cifar_records(3, 77));
  cifar.write("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  for (const auto& [name, bytes] : make_image_files()) images.write(name, bytes);
  const Bytes tar = pack_images(make_image_files()).finish();
  const std::vector<std::pair<std::filesystem::path, std::uint64_t>> kinds = {
      {idx.path(), 7},
      {cifar.path(), 13},
      {images.path(), kTrainImages + kTestImages},
      {out.write("a.tar", tar), kTrainImages + kTestImages},
      {out.write("a.tar.gz", gzip(tar)), kTrainImages + kTestImages},
      {out.write("a.tar.zst", zstd(tar)), kTrainImages + kTestImages},
  };
  for (const auto& [data, records] : kinds) {
    const ConvertResult result = convert_dataset(data, out / "packed");
    EXPECT_EQ(result.records, records) << data;
    EXPECT_EQ(result.bytes, std::filesystem::file_size(out / "packed"));
    EXPECT_FALSE(result.absent);
    expect_same_records(data, out / "packed", Split::kTrain);
    expect_same_records(data, out / "packed", Split::kTest);
    // A record file is a data set like the others.
    convert_dataset(out / "packed", out / "again");
    EXPECT_EQ(read_whole_file(out / "packed").size(), read_whole_file(out / "again").size());
    expect_same_records(data, out / "again", Split::kTest);
  }
}

TEST(Convert, KeepsFieldsOfVaryingLength) {
  const TempFolder folder;
  TarBuilder tar;
  for (int i = 0; i < 5; ++i) {
    const std::string key = std::to_string(i);
    std::string boxes;
    for (int k = 0; k < i; ++k) boxes += (k > 0 ? ", " : "") + std::string("[1, 2, 3, ") + key + ".5]";
    tar.add(key + ".jpg", encode_jpeg(make_picture(8, 9, 3, 1))).add(key + ".cls", to_bytes(key));
    tar.add(key + ".txt", to_bytes(std::string(static_cast<std::size_t>(i), 'x')));
    tar.add(key + ".json", to_bytes("{\"boxes\": [" + boxes + "]}"));
  }
  const auto data = folder.write("a.tar", tar.finish());
  const SourceOptions options{.columns = {.columns = {"txt", "json.boxes:list"}}};
  convert_dataset(data, folder / "packed", {.source = options});
  const SourcePtr from = open_source(data, Split::kTrain, options),
                  to = open_source(folder / "packed", Split::kTrain);
  EXPECT_EQ(to->info().fields, from->info().fields);
  std::vector<std::byte> scratch, other;
  for (std::uint64_t i = 0; i < 5; ++i) {
    const RecordView packed = to->read(i, scratch), unpacked = from->read(i, other);
    for (std::size_t field = 1; field < 4; ++field)
      EXPECT_EQ(to_bytes(packed.fields[field]), to_bytes(unpacked.fields[field])) << i << " " << field;
  }
}

TEST(Convert, GivesTheSameBatches) {
  TempFolder folder;
  std::map<std::string, Bytes> files = make_image_files();
  const std::filesystem::path tar = folder.write("a.tar", pack_images(files).finish());
  convert_dataset(tar, folder / "packed");
  const auto batches = [](const std::filesystem::path& path, int replicas, int threads) {
    const Dataset dataset = Dataset::from(open_source(path, Split::kTrain))
                                .decode()
                                .shuffle({.seed = 3})
                                .map(random_resized_crop({.size = 8}) | flip())
                                .batch({.global_batch = 5});
    return digests_of(dataset, replicas, {.seed = 2, .epochs = 2, .threads = threads});
  };
  const auto expected = batches(tar, 1, 1);
  ASSERT_EQ(expected.size(), 6U);
  EXPECT_EQ(batches(folder / "packed", 1, 1), expected);
  EXPECT_EQ(batches(folder / "packed", 3, 4), expected);
}

TEST(Convert, WritesTheSameBytesFromAnywhere) {
  const TempFolder out;
  TempFolder one, two;
  write_idx(one);
  write_idx(two);
  convert_dataset(one.path(), out / "a");
  convert_dataset(two.path(), out / "b");
  EXPECT_EQ(read_whole_file(out / "a"), read_whole_file(out / "b"));
}

TEST(Convert, TakesOneSplitOrWhatThereIs) {
  TempFolder folder;
  std::map<std::string, Bytes> files;
  for (const auto& [name, bytes] : make_image_files()) {
    if (name.starts_with("train/")) files[name.substr(6)] = bytes;
  }
  const std::filesystem::path train_only = folder.write("train.tar", pack_images(files).finish());
  const ConvertResult result = convert_dataset(train_only, folder / "a");
  EXPECT_EQ(result.absent, Split::kTest);
  EXPECT_EQ(result.records, kTrainImages);
  expect_same_records(train_only, folder / "a", Split::kTrain);
  EXPECT_THROW(open_source(folder / "a", Split::kTest), ConfigError);

  const std::filesystem::path both = folder.write("both.tar", pack_images(make_image_files()).finish());
  EXPECT_EQ(convert_dataset(both, folder / "b", {.split = Split::kTest}).records, kTestImages);
  expect_same_records(both, folder / "b", Split::kTest);
  EXPECT_THROW(open_source(folder / "b", Split::kTrain), ConfigError);
}

TEST(Convert, DoesNotTakeHalfACopyForTheWhole) {
  const TempFolder out;
  TempFolder folder;
  write_idx(folder);
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  EXPECT_THAT(error_of_converting<DataError>(folder.path(), out / "a"), HasSubstr("the test split"));
  EXPECT_EQ(path_kind(out / "a"), PathKind::kMissing);
  EXPECT_EQ(convert_dataset(folder.path(), out / "a", {.split = Split::kTrain}).records, 5U);
}

TEST(Convert, ReducesAndEncodesAnew) {
  TempFolder folder;
  std::map<std::string, Bytes> files;
  files["cat/large.jpg"] = encode_jpeg(make_picture(90, 120, 3, 1));
  files["cat/small.png"] = encode_png(make_picture(20, 30, 3, 2));
  files["dog/tall.png"] = encode_png(make_picture(200, 10, 3, 3));
  const std::filesystem::path data = folder.write("a.tar", pack_images(files).finish());
  convert_dataset(data, folder / "small", {.max_side = 40});
  ImageDecoder decoder;
  std::vector<std::byte> scratch;
  const auto size_of_record = [&](const Source& source, std::uint64_t record) {
    return decoder.read_size(source.read(record, scratch).fields[0]);
  };
  const SourcePtr small = open_source(folder / "small", Split::kTrain);
  EXPECT_EQ(size_of_record(*small, 0), (ImageSize{30, 40}));
  EXPECT_EQ(to_bytes(small->read(1, scratch).fields[0]), files["cat/small.png"]) << "it fits: byte for byte";
  EXPECT_EQ(size_of_record(*small, 2), (ImageSize{40, 2}));

  const ConvertResult fine = convert_dataset(data, folder / "fine", {.quality = 95});
  const ConvertResult rough = convert_dataset(data, folder / "rough", {.quality = 20});
  EXPECT_LT(rough.bytes, fine.bytes);
  const SourcePtr source = open_source(folder / "fine", Split::kTrain);
  EXPECT_EQ(size_of_record(*source, 1), (ImageSize{20, 30}));
  const auto bytes = source->read(1, scratch).fields[0];
  EXPECT_EQ(bytes[0], std::byte{0xFF}) << "a JPEG now";
}

TEST(Convert, WritesTheSameBytesWithAnyNumberOfThreads) {
  TempFolder folder;
  std::map<std::string, Bytes> files;
  for (int i = 0; i < 75; ++i) {
    files[(i < 40 ? "a/" : "b/") + std::to_string(100 + i) + ".jpg"] =
        encode_jpeg(make_picture(20 + i % 7, 40, 3, static_cast<std::uint64_t>(i)));
  }
  const std::filesystem::path data = folder.write("a.tar", pack_images(files).finish());
  convert_dataset(data, folder / "one", {.max_side = 30, .threads = 1});
  for (const int threads : {0, 2, 3}) {
    convert_dataset(data, folder / "more", {.max_side = 30, .threads = threads});
    EXPECT_EQ(read_whole_file(folder / "more"), read_whole_file(folder / "one")) << threads;
  }
}

TEST(Convert, KeepsMasksAsTheyAre) {
  const TempFolder folder;
  TarBuilder tar;
  for (const std::string key : {"a", "b", "c"}) {
    tar.add(key + ".jpg", encode_jpeg(make_picture(20, 30, 3, 1))).add(key + ".cls", to_bytes("1"));
    tar.add(key + ".seg.png", encode_png(make_picture(20, 30, 1, 2)));
    tar.add(key + ".json", to_bytes("{\"box\": [1, 2, 3, 4.5]}"));
  }
  const auto data = folder.write("a.tar", tar.finish());
  ConvertOptions options{.source = {.columns = {.columns = {"seg=seg.png:mask", "json.box"}}}};
  convert_dataset(data, folder / "records", options);
  const SourcePtr before = open_source(data, Split::kTrain, options.source);
  const SourcePtr after = open_source(folder / "records", Split::kTrain);
  EXPECT_EQ(after->info().fields, before->info().fields);
  EXPECT_EQ(read_all(*after), read_all(*before));
  const Dataset moved = Dataset::from(after).decode().map(center_crop(16).along({.masks = {"seg"}}));
  EXPECT_EQ(moved.fields()[2].shape, (Shape{16, 16, 1}));
  options.max_side = 10;
  EXPECT_THAT(error_of_converting<ConfigError>(data, folder / "smaller", options),
              HasSubstr("'seg' is a mask, which does not change with its image"));
}

TEST(Convert, SaysWhatCannotBe) {
  const TempFolder out;
  TempFolder folder;
  write_idx(folder);
  EXPECT_THAT(error_of_converting<ConfigError>(folder.path(), out / "a", {.max_side = 10}),
              HasSubstr("raw pixels"));
  EXPECT_THAT(error_of_converting<ConfigError>(folder.path(), out / "a", {.quality = 101}), HasSubstr("101"));
  EXPECT_THAT(error_of_converting<ConfigError>(folder.path(), out / "a", {.max_side = -1}), HasSubstr("-1"));
  EXPECT_THAT(error_of_converting<ConfigError>(folder.path(), out / "a", {.threads = -2}),
              HasSubstr("threads = -2"));
  EXPECT_THAT(error_of_converting<ConfigError>(folder.path(), folder.path()), HasSubstr("is a folder"));
  EXPECT_THAT(error_of_converting<ConfigError>(folder.path(), folder / "train-labels-idx1-ubyte"),
              HasSubstr("one of the files that are read"));
  EXPECT_EQ(read_whole_file(folder / "train-labels-idx1-ubyte"), make_idx({5}));
  EXPECT_THAT(error_of_converting<DataError>(folder / "gone", out / "a"), HasSubstr("no such file"));
  EXPECT_THAT(error_of_converting<DataError>(folder.path(), folder / "no" / "a"), HasSubstr("cannot create"));
  EXPECT_EQ(path_kind(out / "a"), PathKind::kMissing);
}

TEST(Convert, NamesAnImageThatCannotBeDecodedAndLeavesNothing) {
  TempFolder folder;
  auto files = make_image_files();
  Bytes& bad = files["train/dog/1.jpg"];
  bad.resize(bad.size() / 2);
  const std::filesystem::path data = folder.write("a.tar", pack_images(files).finish());
  for (const int quality : {0, 80}) {
    const DataError error =
        error_of<DataError>([&] { convert_dataset(data, folder / "packed", {.quality = quality}); });
    EXPECT_EQ(error.location().record, 5U);
    EXPECT_THAT(error.what(), HasSubstr("train/dog/1.jpg: convert: "));
    EXPECT_EQ(list_directory(folder.path()).size(), 1U);
  }
}

TEST(Convert, LeavesOutBadRecordsWhereTheyAreSkipped) {
  TempFolder folder;
  auto files = make_image_files();
  Bytes& bad = files["train/cat/0.jpg"];
  bad.resize(bad.size() / 2);
  files["test/cat/0.png"][20] ^= std::byte{1};
  const std::filesystem::path data = folder.write("a.tar", pack_images(files).finish());
  files.erase("train/cat/0.jpg");
  files.erase("test/cat/0.png");
  const std::filesystem::path good = folder.write("b.tar", pack_images(files).finish());
  const auto tally = std::make_shared<BadRecordTally>();
  ConvertOptions options{
      .errors = {.on_error = OnError::kSkip, .max_bad_share = 0.5, .quarantine = folder / "bad", .tally = tally}};
  std::uint64_t told = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t records) {
    ++told;
    EXPECT_LE(done, records);
  };
  for (const int threads : {1, 3}) {
    options.threads = threads;
    const ConvertResult result = convert_dataset(data, folder / "packed", options);
    EXPECT_EQ(result.records, kTrainImages + kTestImages - 2);
    EXPECT_EQ(result.bad_records, 2U);
    const SourcePtr train = open_source(folder / "packed", Split::kTrain);
    EXPECT_EQ(read_all(*train), read_all(*open_source(good, Split::kTrain)));
  }
  EXPECT_EQ(std::ranges::count(read_whole_file(folder / "bad"), std::byte{'\n'}), 2 * 2);
  EXPECT_EQ(told, 2 * 2 * (kTrainImages + kTestImages)) << "once to find them, once to write";
  EXPECT_EQ(tally->count().bad, 2U);
  EXPECT_EQ(tally->count().records, kTrainImages + kTestImages);
  options.errors.max_bad_share = 0.1;
  EXPECT_THAT(
      error_of_converting<DataError>(data, folder / "no", options),
      HasSubstr("1 of the 3 records of the test split is bad, ErrorPolicy::max_bad_share = 0.1 allows none"));
  EXPECT_EQ(path_kind(folder / "no"), PathKind::kMissing);
}

TEST(Convert, ALabelThatIsNoClassIsABadRecord) {
  const TempFolder out;
  TempFolder folder;
  Bytes records = cifar_records(20, 1);
  records[7 * 3073] = std::byte{200};
  folder.write("test_batch.bin", records);
  EXPECT_THAT(error_of_converting<DataError>(folder.path(), out / "a", {.split = Split::kTest}),
              HasSubstr("label check: label 200 where there are 10 classes, record 7"));
  const ConvertOptions skip{.split = Split::kTest, .errors = {.on_error = OnError::kSkip, .max_bad_share = 0.05}};
  EXPECT_EQ(convert_dataset(folder.path(), out / "a", skip).records, 19U);
}

TEST(Convert, OverwritesNoImageOfATableAndAddsNoneToItsFolder) {
  TempFolder folder;
  for (const char* name : {"data/a/1.jpg", "data/b/2.jpg"})
    folder.write(name, encode_jpeg(make_picture(4, 4, 3, 1)));
  const auto table = folder.write("tables/list.csv", "path,label\n../data/a/1.jpg,0\n../data/b/2.jpg,1\n");
  std::filesystem::create_symlink(folder / "data/b/2.jpg", folder / "link");
  for (const char* to : {"data/b/2.jpg", "link", "tables/../data/a/1.jpg"}) {
    EXPECT_THAT(error_of_converting<ConfigError>(table, folder / to), HasSubstr("is an image that")) << to;
  }
  for (const char* to : {"data/new", "data/a/../new", "data/b/new"}) {
    EXPECT_THAT(error_of_converting<ConfigError>(folder / "data", folder / to),
                HasSubstr("would lie in the folder"))
        << to;
    EXPECT_EQ(path_kind(folder / to), PathKind::kMissing);
  }
  EXPECT_EQ(convert_dataset(table, folder / "tables/new").records, 2U);
}

TEST(Convert, TellsItsProgress) {
  const TempFolder out;
  TempFolder folder;
  write_idx(folder);
  std::vector<std::uint64_t> done;
  convert_dataset(folder.path(), out / "a", {.progress = [&](std::uint64_t now, std::uint64_t records) {
                    EXPECT_EQ(records, 7U);
                    done.push_back(now);
                  }});
  EXPECT_EQ(done, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace headrace::test
