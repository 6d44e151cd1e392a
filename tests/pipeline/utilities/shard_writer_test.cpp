// Records that are written as they come, and streams that are converted.
#include "headrace/pipeline/shard_writer.h"

#include "headrace/pipeline/sources/sample_table.h"
#include "headrace/tests/pipeline/sources/source_suite.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

class Shards : public ::testing::Test {
 protected:
  Shards() { options_.shard_bytes = 8'000; }

  static Fields fields() { return labelled_image_fields(); }
  static void fill(std::uint64_t i, RecordWriter& record) {
    record.put(0,
               i == kBad ? to_bytes("no image") : encode_jpeg(make_picture(30, 20 + static_cast<int>(i), 3, i)));
    record.put(1, static_cast<std::int64_t>(i % 3));
  }
  // The same records, of known number.
  static SourcePtr known(std::uint64_t records) {
    return generator(
        {.name = "known", .fields = fields(), .records = records, .fingerprint = 1, .function = &Shards::fill});
  }
  ConvertResult write(const std::string& to, std::uint64_t records) const {
    ShardWriter writer(folder_ / to, fields(), {}, options_);
    for (std::uint64_t i = 0; i < records; ++i) writer.append([&](RecordWriter& record) { fill(i, record); });
    return writer.finish();
  }
  std::map<std::string, std::string> files_in(const std::string& folder) const {
    std::map<std::string, std::string> files;
    for (const DirectoryEntry& entry : list_directory(folder_ / folder))
      files[entry.path.filename().string()] = text_of(entry.path);
    return files;
  }

  static constexpr std::uint64_t kBad = 77;
  TempFolder folder_;
  ConvertOptions options_;
};

TEST_F(Shards, AreOneDataSet) {
  const ConvertResult result = write("set", 50);
  EXPECT_EQ(result.records, 50U);
  EXPECT_GT(result.shards, 4U);
  const auto files = files_in("set");
  EXPECT_EQ(files.size(), result.shards) << "and no marker";
  for (const auto& [name, text] : files) EXPECT_LT(text.size(), 9'000U) << name;
  const SourcePtr set = open_source(folder_ / "set", Split::kTrain);
  convert_dataset(Dataset::from(known(50)), folder_ / "one.records");
  EXPECT_EQ(read_all(*set), read_all(*known(50)));
  EXPECT_EQ(set->info().fingerprint, open_source(folder_ / "one.records", Split::kTrain)->info().fingerprint);
}

TEST_F(Shards, AreTheSameBytesWhereverAndHoweverTheyAreWritten) {
  write("set", 40);
  options_.threads = 5;
  write("elsewhere", 40);
  EXPECT_TRUE(files_in("set") == files_in("elsewhere"));
}

TEST_F(Shards, OfTwoSplitsLieInOneFolder) {
  write("set", 20);
  options_.split = Split::kTest;
  write("set", 10);
  EXPECT_EQ(open_source(folder_ / "set", Split::kTrain)->info().records, 20U);
  EXPECT_EQ(read_all(*open_source(folder_ / "set", Split::kTest)), read_all(*known(10)));
}

TEST_F(Shards, ThatAreUnfinishedAreNoDataSetAndGoOn) {
  write("whole", 50);
  for (const std::uint64_t stopped : {1, 17, 49}) {
    const std::string name = "stopped-" + std::to_string(stopped);
    {
      ShardWriter writer(folder_ / name, fields(), {}, options_);
      for (std::uint64_t i = 0; i < stopped; ++i) writer.append([&](RecordWriter& record) { fill(i, record); });
    }
    EXPECT_THAT(error_of([&] { open_source(folder_ / name, Split::kTrain); }).what(), HasSubstr("unfinished"));
    const std::size_t there = files_in(name).size() - 1;
    EXPECT_EQ(write(name, 50).kept_shards, there);
    EXPECT_TRUE(files_in(name) == files_in("whole"));
  }
}

TEST_F(Shards, AreNoDataSetAsTarsEither) {
  options_.format = ConvertFormat::kWebDataset;
  {
    ShardWriter writer(folder_ / "tars", fields(), {}, options_);
    for (std::uint64_t i = 0; i < 30; ++i) writer.append([&](RecordWriter& record) { fill(i, record); });
  }
  EXPECT_GT(files_in("tars").size(), 2U);
  EXPECT_THAT(error_of([&] { open_source(folder_ / "tars", Split::kTrain); }).what(), HasSubstr("unfinished"));
  EXPECT_THAT(error_of([&] { web_dataset(folder_ / "tars"); }).what(), HasSubstr("unfinished"));
  EXPECT_EQ(write("tars", 30).kept_shards, 0U) << "a tar does not say whose records it has";
  EXPECT_EQ(read_all(*open_source(folder_ / "tars", Split::kTrain)), read_all(*known(30)));
}

// Of records that are others now, and more than there are now.
TEST_F(Shards, OfAnEarlierRunAreWrittenAgain) {
  write("whole", 12);
  {
    ShardWriter writer(folder_ / "set", fields(), {}, options_);
    for (std::uint64_t i = 0; i < 50; ++i) writer.append([&](RecordWriter& record) { fill(i + 1, record); });
  }
  EXPECT_EQ(write("set", 12).kept_shards, 0U);
  EXPECT_TRUE(files_in("set") == files_in("whole"));
}

TEST_F(Shards, AreNotMixedWithOthers) {
  write("set", 20);
  EXPECT_THAT(error_of([&] { write("set", 20); }).what(), HasSubstr("holds shards"));
  { const ShardWriter begun(folder_ / "begun", fields(), {}, options_); }
  options_.max_side = 10;
  EXPECT_THAT(error_of([&] { write("begun", 20); }).what(), HasSubstr("was begun there"));
}

TEST_F(Shards, HaveTheOptionsOfAConversion) {
  options_.max_side = 16;
  write("small", 10);
  options_.shard_bytes = 0;
  convert_dataset(Dataset::from(known(10)), folder_ / "small.records", options_);
  EXPECT_EQ(read_all(*open_source(folder_ / "small", Split::kTrain)),
            read_all(*open_source(folder_ / "small.records", Split::kTrain)));
  options_.shard_bytes = 4'000;
  options_.format = ConvertFormat::kWebDataset;
  write("tars", 10);
  EXPECT_EQ(read_all(*open_source(folder_ / "tars", Split::kTrain)),
            read_all(*open_source(folder_ / "small.records", Split::kTrain)));
  EXPECT_THROW(ShardWriter(folder_ / "raw", {{.name = "x", .dtype = DType::kF32, .shape = {}}}, {}, options_),
               ConfigError);
}

TEST_F(Shards, SayWhichRecordIsBad) {
  EXPECT_THAT(error_of([&] { write("bad", 90); }).what(), HasSubstr("train-000"));
  options_.errors = {.on_error = OnError::kSkip, .max_bad_share = 1};
  const ConvertResult result = write("good", 90);
  EXPECT_EQ(result.records, 89U);
  EXPECT_EQ(result.bad_records, 1U);
}

TEST_F(Shards, TakeWholeRecordsAlone) {
  ShardWriter writer(folder_ / "set", fields(), {}, options_);
  EXPECT_THROW(writer.append([](RecordWriter& record) { record.put(1, std::int64_t{1}); }), ConfigError);
  EXPECT_THROW(writer.append([](RecordWriter& record) { record.put(1, std::int32_t{1}); }), ConfigError);
  EXPECT_THROW(writer.finish(), ConfigError) << "nothing was given";
  writer.append([](RecordWriter& record) { fill(3, record); });
  EXPECT_EQ(writer.finish().records, 1U) << "what was refused is not there";
}

// Neither is ever listed before it is read.
TEST_F(Shards, OfStreams) {
  const auto stream = [&](std::uint64_t first) {
    return [i = first](RecordWriter& record) mutable {
      if (i == 30) return false;
      fill(i++, record);
      return true;
    };
  };
  const Dataset data =
      Dataset::from(record_stream({.name = "made", .fields = fields(), .fingerprint = 1, .open = stream}));
  EXPECT_THAT(error_of([&] { convert_dataset(data, folder_ / "one.records"); }).what(), HasSubstr("shard_bytes"));
  EXPECT_EQ(convert_dataset(data, folder_ / "set", options_).records, 30U);
  EXPECT_EQ(read_all(*open_source(folder_ / "set", Split::kTrain)), read_all(*known(30)));
}

TEST_F(Shards, OfShardsThatAreNotIndexed) {
  for (int shard = 0; shard < 3; ++shard) {
    TarBuilder tar;
    for (int i = 0; i < 9; ++i) {
      const int number = 9 * shard + i;
      tar.add(std::to_string(number) + ".jpg",
              encode_jpeg(make_picture(20, 20, 3, static_cast<std::uint64_t>(number))));
      tar.add(std::to_string(number) + ".cls", to_bytes(std::to_string(number % 5)));
    }
    folder_.write("tars/train-" + std::to_string(shard) + ".tar", tar.finish());
  }
  convert_dataset(folder_ / "tars", folder_ / "indexed", options_);
  options_.source.indexed = false;
  options_.split = Split::kTrain;
  const ConvertResult result = convert_dataset(folder_ / "tars", folder_ / "streamed", options_);
  EXPECT_EQ(result.records, 27U);
  EXPECT_THAT(result.reading, HasSubstr("not indexed"));
  const SourcePtr streamed = open_source(folder_ / "streamed", Split::kTrain);
  EXPECT_EQ(read_all(*streamed), read_all(*open_source(folder_ / "indexed", Split::kTrain)));
}

}  // namespace
}  // namespace headrace::test
