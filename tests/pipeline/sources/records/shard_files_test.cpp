#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/pipeline/sources/source_suite.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

Bytes one_record(std::int64_t label) {
  return frame(example({entry("image", bytes_feature(encode_png(make_picture(4, 4, 3, 1)))),
                        entry("label", packed_feature(label))}));
}

Bytes one_sample() {
  return TarBuilder().add("0.png", encode_png(make_picture(4, 4, 3, 1))).add("0.cls", to_bytes("7")).finish();
}

// Records of the folder's split; an error's words where it cannot be opened.
std::string count(const TempFolder& folder, Split split = Split::kTrain) {
  try {
    return std::to_string(open_source(folder.path(), split)->info().records);
  } catch (const Error& error) {
    return error.what();
  }
}

void write_shards(const TempFolder& folder, const std::string& before, const std::string& after,
                  std::initializer_list<int> shards) {
  for (const int i : shards)
    folder.write(before + "-0000" + std::to_string(i) + "-of-00004" + after, one_record(i));
}

TEST(ShardNameTest, KnowsTheCountedNames) {
  const auto parse = [](const char* name) {
    const std::optional<ShardName> shard = parse_shard_name(name);
    return !shard ? "none"
                  : shard->stem + " " + std::to_string(shard->index) + "/" + std::to_string(shard->count) + " " +
                        shard->ending;
  };
  EXPECT_EQ(parse("train-00002-of-00004"), "train 2/4 ");
  EXPECT_EQ(parse("train-00002-of-00004.tfrecord"), "train 2/4 .tfrecord");
  EXPECT_EQ(parse("mnist-train.tfrecord-00000-of-00001"), "mnist-train.tfrecord 0/1 ");
  EXPECT_EQ(parse("a-1-of-2-00001-of-00003.tar.gz"), "a-1-of-2 1/3 .tar.gz");
  for (const char* name : {"train", "train-of-4", "best-of-4", "x-00001-of-00004b", "-of-", "1-of-2"}) {
    EXPECT_EQ(parse(name), "none") << name;
  }
}

TEST(ShardFilesTest, ReadsFoldersOfCountedShards) {
  const std::pair<const char*, const char*> names[] = {
      {"train", ""}, {"train", ".tfrecord"}, {"x.tfrecord", ""}, {"x.tfrecord", ".gz"}};
  for (const auto& [before, after] : names) {
    const TempFolder folder;
    write_shards(folder, before, after, {3, 1, 0, 2});
    folder.write("dataset_info.json", "{}");
    EXPECT_EQ(count(folder), "4") << before << after;
    EXPECT_EQ(open_source(folder.path(), Split::kTrain)->info().file_ends,
              (std::vector<std::uint64_t>{1, 2, 3, 4}));
  }
  const TempFolder tars;
  for (const char* name :
       {"d-train-00000-of-00002.tar", "d-train-00001-of-00002.tar", "d-test-00000-of-00001.tar"}) {
    tars.write(name, one_sample());
  }
  EXPECT_EQ(count(tars), "2");
  EXPECT_EQ(count(tars, Split::kTest), "1");
  const TempFolder bare;
  for (const char* name : {"train-00000-of-00002", "train-00001-of-00002"}) bare.write(name, gzip(one_sample()));
  EXPECT_EQ(count(bare), "2");
}

TEST(ShardFilesTest, NamesTheShardsThatAreMissing) {
  const TempFolder folder;
  write_shards(folder, "train", "", {0, 1, 3});
  EXPECT_THAT(count(folder), HasSubstr("has 3 of the 4 shards that 'train-00003-of-00004' is one of; missing: "
                                       "train-00002-of-00004 (download or copy what is missing"));
  write_shards(folder, "train", "", {2});
  EXPECT_EQ(count(folder), "4");
  write_shards(folder, "validation", ".tfrecord", {0});
  EXPECT_THAT(count(folder),
              HasSubstr("missing: validation-00001-of-00004.tfrecord, validation-00002-of-00004.tfrecord"))
      << "of the other split too: it is one data set";
  const TempFolder large;
  large.write("x.tfrecord-00000-of-01024", one_record(1));
  EXPECT_THAT(count(large), HasSubstr("x.tfrecord-00004-of-01024 and more"));
}

TEST(ShardFilesTest, RefusesLeftoverShards) {
  const TempFolder folder;
  write_shards(folder, "train", "", {0, 1, 2, 3});
  folder.write("train-00000-of-00002", one_record(1));
  EXPECT_THAT(count(folder), HasSubstr("has shards of two writings"));
  std::filesystem::rename(folder / "train-00000-of-00002", folder / "train-00004-of-00004");
  EXPECT_THAT(count(folder), HasSubstr("missing: none, but 'train-00004-of-00004' is more"));
  std::filesystem::rename(folder / "train-00004-of-00004", folder / "train-2-of-4");
  EXPECT_THAT(count(folder), HasSubstr("has one shard twice: 'train-00002-of-00004' and 'train-2-of-4'"));
}

TEST(ShardFilesTest, TellsTheSplitsOfTensorFlowDatasets) {
  const TempFolder folder;
  write_shards(folder, "mnist-train.tfrecord", "", {0, 1, 2, 3});
  folder.write("mnist-test.tfrecord-00000-of-00001", one_record(9));
  EXPECT_EQ(count(folder), "4");
  EXPECT_EQ(count(folder, Split::kTest), "1");
}

// The records of shards of 1, 2, 4, ... samples by their names; -1: refused, asking for the shards of a split.
std::int64_t records_of(std::vector<std::string> names, Split split, const LayoutOptions& layout = {}) {
  const TempFolder folder;
  std::size_t count = 1;
  for (const std::string& name : names) {
    TarBuilder tar;
    for (std::size_t i = 0; i < count && name.ends_with(".tar"); ++i) {
      tar.add(std::to_string(i) + ".png", encode_png(make_picture(4, 4, 3, 1)));
      tar.add(std::to_string(i) + ".cls", to_bytes("1"));
    }
    count *= name.ends_with(".tar") ? 2 : 1;
    folder.write(name, tar.finish());
  }
  try {
    return static_cast<std::int64_t>(open_source(folder.path(), split, {.layout = layout})->info().records);
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.hint(), AnyOf(HasSubstr("train_folder"), HasSubstr("test_folder")));
    return -1;
  }
}

TEST(ShardFilesTest, TellsTheSplitByWordsOfTheNames) {
  const struct {
    std::vector<std::string> names;
    std::int64_t train, test;
  } cases[] = {
      {{"bus.tar", "car.tar", "train.tar", "tram.tar"}, -1, -1},
      {{"TRAIN-0.tar", "TEST-0.tar"}, 1, 2},
      {{"ds_training-0.tar", "ds_testing-0.tar"}, 1, 2},
      {{"ds-0.tar", "ds_valid-0.tar"}, -1, -1},
      {{"trainA.tar", "valA.tar"}, 1, 2},
      {{"a.tar", "b.tar"}, 3, -1},
      {{"trainers-0.tar", "contest-0.tar", "valley-0.tar"}, 7, -1},
      {{"train-0.tar", "train-1.tar"}, 3, -1},
      {{"train-0.tar", "test-0.tar", "dev-0.tar", "extra-0.tar"}, 1, 2},
      {{"train_test-0.tar", "b.tar"}, -1, -1},
      {{"train/0.tar", "val/0.tar"}, 1, 2},
      {{"set/Train/x-0.tar", "set/test/x-0.tar"}, 1, 2},
      {{"set/a-0.tar", "set/a-1.tar"}, 3, -1},
      {{"a-0.tar", "a-1.tar", ".cache/huggingface/x", ".git/config", "__MACOSX/a-0.tar", "notes/README.md"},
       3,
       -1},
      {{"a-0.tar", "old/a-1.tar"}, 1, -1}};
  for (const auto& one : cases) {
    EXPECT_EQ(records_of(one.names, Split::kTrain), one.train) << one.names.front();
    EXPECT_EQ(records_of(one.names, Split::kTest), one.test) << one.names.front();
  }
}

TEST(ShardFilesTest, TheUserSaysWhichShardsAreOfASplit) {
  const std::vector<std::string> words = {"bus.tar", "car.tar", "train.tar", "tram.tar"},
                                 parts = {"ds-0.tar", "ds_valid-0.tar"};
  EXPECT_EQ(records_of(words, Split::kTrain, {.train_folder = "*"}), 15);
  EXPECT_EQ(records_of(words, Split::kTrain, {.train_folder = "train"}), 4);
  EXPECT_EQ(records_of(parts, Split::kTrain, {.train_folder = "ds"}), 1);
  EXPECT_EQ(records_of(parts, Split::kTest, {.test_folder = "ds_valid"}), 2);
  EXPECT_EQ(records_of(parts, Split::kTrain, {.test_folder = "ds_valid"}), 1) << "what is left";
  EXPECT_EQ(records_of(parts, Split::kTrain, {.train_folder = "d"}), -1);
  EXPECT_EQ(records_of({"train/0.tar", "more/0.tar"}, Split::kTrain, {.train_folder = "more/"}), 2);
}

TEST(ShardFilesTest, AnEmptyShardIsPassedOver) {
  const TempFolder folder;
  folder.write("0.tar", one_sample());
  folder.write("1.tar", TarBuilder().finish());
  const SourcePtr source = open_source(folder.path(), Split::kTrain);
  EXPECT_EQ(source->info().records, 1U);
  EXPECT_THAT(describe_reading(*source), HasSubstr("1 empty shard"));
  folder.write("0.tar", TarBuilder().finish());
  EXPECT_THAT(count(folder), HasSubstr("has no sample in it"));
}

}  // namespace
}  // namespace headrace::test
