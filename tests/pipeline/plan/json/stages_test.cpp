// Every stage and every combination goes through JSON and gives the same stream.
#include <typeinfo>

#include "headrace/pipeline/plan/stages/stage_calls.h"
#include "headrace/tests/pipeline/plan/json/change_options.h"
#include "headrace/tests/pipeline/plan/json/plan_json.h"

namespace headrace::test {
namespace {

class PlanJsonStages : public ::testing::Test {
 protected:
  Dataset first() const { return Dataset::from(parts_.sources.at("first")); }
  Dataset second() const { return Dataset::from(parts_.sources.at("second")); }
  Dataset images() const { return Dataset::from(parts_.sources.at("images")); }
  void expect_same(const Dataset& dataset) const {
    expect_same_stream(dataset.batch({.global_batch = 4}), parts_);
  }

  const RecordFilter even_{.name = "even",
                           .keeps = [](const ExampleView& record) { return record.integer("value") % 2 == 0; }};
  PlanParts parts_{
      .sources = {{"first", numbers(23)}, {"second", numbers(31)}, {"images", noise_images(13, 6, 5)}},
      .filters = {even_}};
};

TEST_F(PlanJsonStages, OnPositions) {
  expect_same(first());
  expect_same(first().shuffle({.seed = ~std::uint64_t{0}}));
  expect_same(first().shuffle({.seed = 3, .reshuffle_each_epoch = false}));
  expect_same(first().shuffle_window({.size = 5, .seed = 9}));
  expect_same(first().shuffle_blocks({.block = 3, .group = 5, .seed = 9, .reshuffle_each_epoch = false}));
  expect_same(first().shuffle_window({.size = 5, .seed = 9, .reshuffle_each_epoch = false}));
  expect_same(first().repeat(3).take(50).skip(7));
  expect_same(first().select({22, 0, 22, 5}));
  expect_same(first().shard(3, 2));
  expect_same(first().without_shard(3, 1));
  expect_same(first().shuffle().enumerate());
  expect_same(first().enumerate({.field = "n"}).shuffle());
  expect_same(first().shard_for_worker({.count = 2, .index = 1}));
}

TEST_F(PlanJsonStages, ShardsOfFiles) {
  const Dataset two = concatenate({first(), second()});
  for (const ShardBy by : {ShardBy::kAuto, ShardBy::kElement}) {
    expect_same(two.shard_for_worker({.count = 2, .index = 1, .by = by}));
  }
}

TEST_F(PlanJsonStages, OfBatches) {
  expect_same_stream(first().batch({.global_batch = 7, .drop_remainder = true}).prefetch(0), parts_);
  const Dataset read = written_and_read(first().batch({.global_batch = 7}).prefetch(5), parts_);
  EXPECT_THAT(read.explain(), HasSubstr("prefetch(batches=5)"));
  EXPECT_EQ(read.global_batch(), 7);
  expect_same_stream(
      first().batch({.global_batch = 4}).shuffle().unbatch().batch({.global_batch = 5}).skip(1).repeat(2), parts_);
}

TEST_F(PlanJsonStages, LabelsAreData) {
  const Dataset kept = images().filter(with_labels({7, 1, 2}));
  expect_same(kept.shuffle({.seed = 2}));
  EXPECT_THAT(kept.to_json(parts_), HasSubstr(R"("labels": [1, 2, 7])"));
  RecordFilter filter = with_labels({4});
  filter.name = "fours";
  filter.version = 3;
  filter.processed = true;
  filter.stall_timeout_seconds = 0.1;
  filter.max_failures = 12;
  const Dataset fours = images().map(center_crop(4)).filter(filter);
  expect_same(fours);
  EXPECT_THAT(fours.to_json(parts_), HasSubstr(R"("stall_timeout_seconds": 0.1)"));
  EXPECT_THAT(fours.to_json(parts_), HasSubstr(R"("max_failures": 12)"));
}

TEST_F(PlanJsonStages, Caches) {
  const TempFolder folder;
  expect_same(images().cache(memory(1 << 20)).map(flip()));
  expect_same(images().cache(disk(folder / "inner")).map(center_crop(4)).cache(memory()).map(flip()));
  expect_same(
      images().cache(disk(folder / "cache", {.budget_bytes = 1 << 20, .segment_bytes = 1 << 16})).map(flip()));
  const Dataset in_memory = images().cache(memory(12345));
  EXPECT_THAT(in_memory.to_json(parts_), HasSubstr(R"({"cache": {"memory": {"budget_bytes": 12345}}})"));
}

TEST_F(PlanJsonStages, Combinations) {
  expect_same(concatenate({first().take(5), second().shuffle({.seed = 3})}).shuffle({.seed = 1}));
  expect_same(interleave({first(), second().skip(3), first().repeat(2)}, {.block = 3}));
  expect_same(mix({first(), second()}));
  expect_same(mix({first(), second()}, {.weights = {0.1, 1.0 / 3}, .seed = 8, .end = MixEnd::kAllSeen}));
  expect_same(zip({first(), second().skip(2)}, {.suffixes = {"", "_2"}, .strict = false}).shuffle({.seed = 4}));
  const Dataset inner = concatenate({first(), mix({second(), first().take(4)}, {.weights = {2, 1}})});
  expect_same(interleave({inner.take(40), second()}).repeat(2));
  expect_same(concatenate({images().map(flip()), images().cache(memory()).take(3)}).map(center_crop(4)));
  expect_same(zip({first().window({.size = 3}), second().window({.size = 3, .shift = 1}).skip(1)},
                  {.suffixes = {"", "_2"}, .strict = false}));
  expect_same(zip({concatenate({first(), first()}), zip({second().filter(even_)})},
                  {.suffixes = {"_a", "_b"}, .strict = false}));
}

TEST_F(PlanJsonStages, UnbatchedRecords) {
  std::vector<std::byte> bytes(6 * 4 * sizeof(std::int64_t), std::byte{1});
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  const Field rows{.name = "value", .dtype = DType::kI64, .shape = {4, 1}};
  parts_.sources["rows"] = in_memory("rows", 6, {Array{.field = rows, .bytes = bytes}});
  const Dataset batches = Dataset::from(parts_.sources.at("rows"));
  expect_same(batches.unbatch());
  expect_same(batches.shuffle({.seed = 5}).skip(1).unbatch().shuffle({.seed = 6}).take(15));
  expect_same(concatenate({batches, batches}).unbatch().unbatch());
}

// A record of so many bytes as its number says.
TEST_F(PlanJsonStages, PaddedBatches) {
  parts_.sources["texts"] =
      generator({.name = "texts",
                 .fields = {{.name = "text", .dtype = DType::kU8, .shape = {Shape::kDynamic}}},
                 .records = 17,
                 .fingerprint = 5,
                 .function = [](std::uint64_t index, RecordWriter& record) {
                   std::ranges::fill(record.allocate(0, index % 7 + 1), std::byte{3});
                 }});
  const Dataset texts = Dataset::from(parts_.sources.at("texts"));
  expect_same_stream(texts.padded_batch({.global_batch = 4}), parts_);
  expect_same_stream(
      texts.shuffle({.seed = 1})
          .padded_batch(
              {.global_batch = 4, .drop_remainder = true, .pad = {{.field = "text", .length = 9, .value = 255}}})
          .prefetch(1),
      parts_);
  expect_same_stream(concatenate({texts.take(3), texts}).padded_batch({.global_batch = 4}), parts_);
  expect_same_stream(concatenate({texts.take(3), texts})
                         .bucket_by_length({.field = "text", .boundaries = {2, 5}, .batch_sizes = {3}})
                         .take(3),
                     parts_);
  expect_same_stream(zip({texts, texts}, {.suffixes = {"", "_2"}}).padded_batch({.global_batch = 4}), parts_);
}

template <typename Options>
void expect_shows(int members) {
  Options options;
  ChangeAll all(1);
  options.each_field(all);
  EXPECT_EQ(all.count(), members) << typeid(Options).name();
}

int shown_options_of(const std::string& label) {
  plan_json::OptionNames names;
  for (const StageCall& call : stage_calls()) {
    for (const ShownOptions& shown : call.options) {
      if (label == shown.label) shown.visit(names);
    }
  }
  return static_cast<int>(names.names().size());
}

// An option that is added and not shown would be lost.
TEST_F(PlanJsonStages, ShowEveryOption) {
  expect_shows<DecodeOptions>(count_members<DecodeOptions>());
  expect_shows<ShuffleOptions>(count_members<ShuffleOptions>());
  expect_shows<ShuffleWindowOptions>(count_members<ShuffleWindowOptions>());
  expect_shows<WorkerShard>(count_members<WorkerShard>());
  expect_shows<BatchOptions>(count_members<BatchOptions>());
  expect_shows<PaddedBatchOptions>(count_members<PaddedBatchOptions>() + count_members<PadField>());
  expect_shows<BucketOptions>(count_members<BucketOptions>() + count_members<PadField>());
  expect_shows<EnumerateOptions>(count_members<EnumerateOptions>());
  expect_shows<InterleaveOptions>(count_members<InterleaveOptions>());
  expect_shows<MixOptions>(count_members<MixOptions>());
  expect_shows<ZipOptions>(count_members<ZipOptions>());
  const int folder = 1, labels = 1, function = 1;
  EXPECT_EQ(shown_options_of("cache: disk"), folder + count_members<DiskCacheOptions>());
  EXPECT_EQ(shown_options_of("filter"), labels + count_members<RecordFilter>() - function);
}

// What a person may leave out takes the usual value.
TEST_F(PlanJsonStages, OptionsHaveUsualValues) {
  const std::string json = R"({"headrace_plan": 2, "source": {"named": "images"}, "stages": [
    {"shuffle": {}}, {"map": [{"flip": {}}, {"pad_crop": {"size": 6}}]}, {"batch": {}}]})";
  const Dataset read = Dataset::from_json(json, {.parts = parts_});
  EXPECT_EQ(read.fingerprint(), images().shuffle().map(flip() | pad_crop(6, 4)).batch({}).fingerprint());
  const std::string bare = R"({"headrace_plan": 2, "source": {"named": "images"}})";
  EXPECT_EQ(Dataset::from_json(bare, {.parts = parts_}).fingerprint(), images().fingerprint());
}

// For people: short lists on a line, one stage a line.
TEST_F(PlanJsonStages, AreReadable) {
  parts_.sources = {{"images", parts_.sources.at("images")}};
  const Dataset plan = images()
                           .shuffle({.seed = 7})
                           .map(normalize({0.1F, 0.2F, 0.3F}, {1, 1, 1}) | flip())
                           .batch({.global_batch = 8});
  const std::string json = plan.to_json(parts_);
  EXPECT_THAT(json, StartsWith("{\n  \"headrace_plan\": 2,\n  \"source\": {\"named\": \"images\", "));
  EXPECT_THAT(json, HasSubstr(R"(
  "stages": [
    {"shuffle": {"seed": 7, "reshuffle_each_epoch": true}},
    {
      "map": [
        {"normalize": {"mean": [0.1, 0.2, 0.3], "std": [1.0, 1.0, 1.0]}},
        {
          "flip": {
            "probability": 0.5,
            "alternating": false,
            "masks": [],
            "boxes": [],
            "lost_boxes": "zero",
            "with_boxes": []
          }
        }
      ]
    },
    {"batch": {"global_batch": 8, "drop_remainder": false}}
  ]
}
)"));
}

}  // namespace
}  // namespace headrace::test
