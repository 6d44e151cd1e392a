// A data set as several record files: the same records as in one, written by the same call however often it is
// stopped.
#include "headrace/devices/base/system_file.h"
#include "headrace/pipeline/convert.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/pipeline/sources/source_suite.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

class ConvertShards : public ::testing::Test {
 protected:
  ConvertShards() {
    TarBuilder tar;
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::string split = i % 6 == 5 ? "test/" : "train/";
      tar.add(split + std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i) + ".jpg",
              encode_jpeg(make_picture(30, 20 + static_cast<int>(i), 3, i)));
    }
    data_ = folder_.write("photos.tar", tar.finish());
    convert_dataset(data_, folder_ / "one.records");
  }

  ConvertResult convert(const std::string& to, ConvertOptions options = {}) const {
    if (options.shard_bytes == 0) options.shard_bytes = 8'000;
    return convert_dataset(data_, folder_ / to, options);
  }
  std::vector<std::string> names_in(const std::string& folder) const {
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : list_directory(folder_ / folder))
      names.push_back(entry.path.filename().string());
    return names;
  }

  // All files of a folder, by name.
  std::map<std::string, std::string> files_in(const std::string& folder) const {
    std::map<std::string, std::string> files;
    for (const std::string& name : names_in(folder)) files[name] = text_of(folder_ / folder / name);
    return files;
  }

  TempFolder folder_;
  std::filesystem::path data_;
};

TEST_F(ConvertShards, AreTheRecordsOfTheOneFile) {
  const ConvertResult result = convert("shards");
  EXPECT_EQ(result.records, 60U);
  EXPECT_GT(result.shards, 4U);
  EXPECT_EQ(result.kept_shards, 0U);
  EXPECT_EQ(result.shards, names_in("shards").size()) << "and no marker is left";
  std::uint64_t bytes = 0;
  for (const DirectoryEntry& entry : list_directory(folder_ / "shards")) bytes += entry.size;
  EXPECT_EQ(result.bytes, bytes);
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const SourcePtr shards = open_source(folder_ / "shards", split),
                    one = open_source(folder_ / "one.records", split);
    EXPECT_EQ(read_all(*shards), read_all(*one));
    EXPECT_EQ(shards->info().fingerprint, one->info().fingerprint);
    EXPECT_EQ(shards->info().classes, one->info().classes);
    for (std::uint64_t i = 0; i < one->info().records; ++i) EXPECT_EQ(shards->describe(i), one->describe(i));
  }
  // A training goes on with the one from a state of the other.
  const auto batches = [&](const std::string& name) {
    return cpu_digests_of(Dataset::from(open_source(folder_ / name, Split::kTrain))
                              .decode()
                              .shuffle({.seed = 3})
                              .map(random_resized_crop({.size = 8}))
                              .batch({.global_batch = 5}),
                          {.epochs = 2});
  };
  EXPECT_EQ(batches("shards"), batches("one.records"));
}

TEST_F(ConvertShards, AreTheSameBytesWithAnyNumberOfThreads) {
  convert("one-thread", {.threads = 1});
  convert("five-threads", {.threads = 5});
  EXPECT_TRUE(files_in("one-thread") == files_in("five-threads"));
}

TEST_F(ConvertShards, DivideTheRecordsEvenly) {
  convert("shards");
  std::vector<std::uint64_t> records;
  for (const DirectoryEntry& entry : list_directory(folder_ / "shards")) {
    if (entry.path.filename().string().starts_with("train"))
      records.push_back(open_source(entry.path, Split::kTrain)->info().records);
  }
  const auto [least, most] = std::ranges::minmax(records);
  EXPECT_LE(most - least, 1U);
  EXPECT_EQ(std::accumulate(records.begin(), records.end(), std::uint64_t{0}), 50U);
}

// Stopped at every single file that it writes, and called again.
TEST_F(ConvertShards, GoOnWhereAConversionWasStopped) {
  convert("whole");
  const auto whole = files_in("whole");
  class NoMoreFiles final : public FileFaults {
   public:
    explicit NoMoreFiles(int files) : left_(files) { before_ = set_file_faults(this); }
    ~NoMoreFiles() override { set_file_faults(before_); }
    int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t, std::size_t&) override {
      const bool shard = operation == FileOperation::kRename && path.string().find("-of-") != std::string::npos;
      return shard && left_.fetch_sub(1) <= 0 ? ENOSPC : 0;
    }

   private:
    std::atomic<int> left_;
    FileFaults* before_;
  };
  for (int files = 0; files < static_cast<int>(whole.size()); ++files) {
    const std::string name = "stopped-" + std::to_string(files);
    {
      const NoMoreFiles faults(files);
      EXPECT_THROW(convert(name), DataError);
    }
    EXPECT_THROW(open_source(folder_ / name, Split::kTrain), Error) << "half a data set is none";
    const ConvertResult result = convert(name);
    EXPECT_EQ(result.kept_shards, static_cast<std::uint64_t>(files));
    EXPECT_TRUE(files_in(name) == whole) << files << " files were there";
  }
}

TEST_F(ConvertShards, AreAllThereOrNone) {
  convert("whole");
  const std::string name = names_in("whole")[2];
  std::filesystem::rename(folder_ / "whole" / name, folder_ / "aside");
  EXPECT_THAT(error_of([&] { open_source(folder_ / "whole", Split::kTrain); }).what(), HasSubstr("missing"));
  EXPECT_THROW(convert("whole"), ConfigError) << "without a marker its files are another's";
}

TEST_F(ConvertShards, RefuseTheFolderOfAnotherConversion) {
  folder_.write("other/.headrace-convert", "headrace convert 1\nshard_bytes 5\n");
  EXPECT_THAT(error_of([&] { convert("other"); }).what(), HasSubstr("was begun there"));
  EXPECT_EQ(names_in("other"), std::vector<std::string>{".headrace-convert"});
  EXPECT_THROW(convert("photos.tar"), ConfigError);
  const auto images = folder_.write("images/train/a/1.jpg", encode_jpeg(make_picture(9, 9, 3, 1))).parent_path();
  for (const auto& to : {folder_ / "images", images, images / "deeper"})
    EXPECT_THROW(convert_dataset(folder_ / "images", to, {.shard_bytes = 1000}), ConfigError) << to;
}

TEST_F(ConvertShards, LeaveOutBadRecords) {
  TarBuilder tar;
  for (int i = 0; i < 40; ++i) {
    tar.add(
        std::string(i < 20 ? "train/a/" : "train/b/") + std::to_string(100 + i) + ".jpg",
        i % 7 == 3 ? to_bytes("no image") : encode_jpeg(make_picture(20, 20, 3, static_cast<std::uint64_t>(i))));
  }
  const auto data = folder_.write("bad.tar", tar.finish());
  const ConvertOptions options{.shard_bytes = 3000, .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}};
  const ConvertResult result = convert_dataset(data, folder_ / "good", options);
  EXPECT_EQ(result.bad_records, 6U);
  EXPECT_EQ(open_source(folder_ / "good", Split::kTrain)->info().records, 34U);
  EXPECT_THROW(convert_dataset(data, folder_ / "none", {.shard_bytes = 3000}), DataError);
}

TEST_F(ConvertShards, OfSeveralDataSetsAreNone) {
  convert("mixed");
  folder_.write("mixed/other.records", text_of(folder_ / "one.records"));
  EXPECT_EQ(open_source(folder_ / "mixed", Split::kTrain)->info().records, 100U)
      << "one more file of the same kind";
  TarBuilder tar;
  tar.add("x/1.jpg", encode_jpeg(make_picture(9, 9, 3, 1))).add("y/2.jpg", encode_jpeg(make_picture(9, 9, 3, 2)));
  convert_dataset(folder_.write("xy.tar", tar.finish()), folder_ / "mixed/other.records");
  EXPECT_THAT(error_of([&] { open_source(folder_ / "mixed", Split::kTrain); }).what(),
              HasSubstr("fields or classes"));
}

TEST_F(ConvertShards, SayWhatElseIsInTheFolder) {
  convert("shards");
  folder_.write("shards/README.txt", "of what");
  const auto left_out = open_source(folder_ / "shards", Split::kTrain)->info().left_out;
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_EQ(left_out[0].files, 1U);
  EXPECT_THAT(describe_reading(*open_source(folder_ / "shards", Split::kTrain)),
              HasSubstr("record files, in the order"));
}

// Records of a program's own.
TEST(ConvertRecords, OfAnyDataset) {
  TempFolder folder;
  const auto made = [](std::uint64_t records) {
    return Dataset::from(generator({.name = "made",
                                    .fields = {{.name = "text", .dtype = DType::kU8, .shape = Shape({-1})},
                                               {.name = "label", .dtype = DType::kI64, .shape = {}}},
                                    .records = records,
                                    .fingerprint = 5,
                                    .classes = {"even", "odd"},
                                    .function = [](std::uint64_t i, RecordWriter& record) {
                                      const std::string text(i % 7, 'x');
                                      record.put(0, std::as_bytes(std::span(text)));
                                      record.put(1, static_cast<std::int64_t>(i % 2));
                                    }}));
  };
  const Dataset data = made(100);
  const ConvertResult one = convert_dataset(data, folder / "one.records");
  const ConvertResult many = convert_dataset(data, folder / "many", {.shard_bytes = 200, .split = Split::kTest});
  EXPECT_EQ(one.records, 100U);
  EXPECT_EQ(one.shards, 0U);
  EXPECT_GT(many.shards, 3U);
  const SourcePtr file = open_source(folder / "one.records", Split::kTrain),
                  shards = open_source(folder / "many", Split::kTest);
  EXPECT_EQ(read_all(*file), read_all(*data.source()));
  EXPECT_EQ(read_all(*shards), read_all(*data.source()));
  EXPECT_EQ(shards->info().classes, (std::vector<std::string>{"even", "odd"}));
  EXPECT_THROW(open_source(folder / "many", Split::kTrain), ConfigError);
  EXPECT_THROW(convert_dataset(data.take(5), folder / "two.records"), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(folder / "two.records"));
}

}  // namespace
}  // namespace headrace::test
