#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

// Two fields of every example of the first epochs, in order.
struct Columns {
  std::vector<std::int64_t> value, index;
};

Columns columns_of(const Dataset& data, std::uint64_t epochs = 1, int replicas = 1,
                   const std::string& field = "index") {
  DeviceGroup devices = cpu_replicas(replicas);
  Loader loader(data, devices, {.seed = 4, .epochs = epochs, .threads = 2});
  Columns all;
  for (bool more = true; more;) {
    for (int r = 0; r < replicas; ++r) {
      const auto batch = loader.next(r);
      more = batch.has_value();
      if (!more) break;
      const auto value = download_examples<std::int64_t>(devices[r], *batch, "value");
      const auto index = download_examples<std::int64_t>(devices[r], *batch, field);
      all.value.insert(all.value.end(), value.begin(), value.end());
      all.index.insert(all.index.end(), index.begin(), index.end());
    }
  }
  return all;
}

Dataset count_up_to(std::uint64_t count) { return Dataset::from(numbers(count)); }

RecordFilter numbered_as(const std::string& field, std::int64_t rest) {
  return {.name = field,
          .keeps = [=](const ExampleView& record) { return record.integer(field) % 3 == rest; },
          .processed = true};
}

TEST(Enumerate, NumbersWhatTheStagesBeforeItLeave) {
  const Columns all = columns_of(count_up_to(9).skip(2).shard(2, 1).enumerate().batch({.global_batch = 2}));
  EXPECT_THAT(all.value, ElementsAre(3, 5, 7));
  EXPECT_THAT(all.index, ElementsAre(0, 1, 2));
}

TEST(Enumerate, BeforeAShuffleIsOfTheRecordAndAfterItOfThePosition) {
  const Columns before = columns_of(count_up_to(17).enumerate().shuffle().batch({.global_batch = 4}), 2);
  EXPECT_EQ(before.index, before.value);
  std::vector<std::int64_t> positions(17);
  std::iota(positions.begin(), positions.end(), 0);
  const Columns after = columns_of(count_up_to(17).shuffle().enumerate().batch({.global_batch = 17}));
  EXPECT_EQ(after.index, positions);
  EXPECT_THAT(after.value, ::testing::UnorderedElementsAreArray(positions));
  EXPECT_NE(after.value, positions);
}

TEST(Enumerate, ChangesTheOrderOfNothing) {
  const Dataset plain = count_up_to(40).shuffle().shuffle_window({.size = 7}).repeat(2).shuffle({.seed = 3});
  const Dataset with = count_up_to(40)
                           .enumerate()
                           .shuffle()
                           .shuffle_window({.size = 7})
                           .enumerate({.field = "second"})
                           .repeat(2)
                           .shuffle({.seed = 3});
  EXPECT_EQ(values_of(with.batch({.global_batch = 8}), 2), values_of(plain.batch({.global_batch = 8}), 2));
}

TEST(Enumerate, CountsOnOverRepeats) {
  EXPECT_THAT(columns_of(count_up_to(3).repeat(2).enumerate().batch({.global_batch = 4})).index,
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(columns_of(count_up_to(3).enumerate().repeat(2).batch({.global_batch = 4})).index,
              ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Enumerate, FiltersSeeAndKeepIt) {
  const Columns all = columns_of(count_up_to(9)
                                     .skip(1)
                                     .enumerate()
                                     .filter(numbered_as("index", 1))
                                     .enumerate({.field = "n"})
                                     .batch({.global_batch = 2}));
  EXPECT_THAT(all.value, ElementsAre(2, 5, 8));
  EXPECT_THAT(all.index, ElementsAre(1, 4, 7));
  EXPECT_THAT(
      columns_of(count_up_to(5).repeat(2).enumerate().filter(numbered_as("index", 0)).batch({.global_batch = 9}))
          .value,
      ElementsAre(0, 3, 1, 4));
}

TEST(Enumerate, OfCombinedDatasetsCountsEachAndAll) {
  const Dataset two = concatenate({count_up_to(5).skip(3).enumerate(), count_up_to(3).enumerate()});
  EXPECT_THAT(columns_of(two.batch({.global_batch = 4})).index, ElementsAre(0, 1, 0, 1, 2));
  EXPECT_THAT(columns_of(two.enumerate({.field = "n"}).batch({.global_batch = 4}), 1, 1, "n").index,
              ElementsAre(0, 1, 2, 3, 4));
  const Columns zipped = columns_of(
      zip({count_up_to(8).skip(2).enumerate(), Dataset::from(numbers(4)).skip(1).enumerate({.field = "n"})},
          {.suffixes = {"", "_right"}, .strict = false})
          .shuffle()
          .batch({.global_batch = 4}),
      2);
  for (std::size_t i = 0; i < zipped.value.size(); ++i) EXPECT_EQ(zipped.value[i], zipped.index[i] + 2);
}

TEST(Enumerate, AfterUnbatchFollowsTheBatches) {
  const Columns all = columns_of(count_up_to(10)
                                     .enumerate({.field = "record"})
                                     .batch({.global_batch = 3})
                                     .shuffle()
                                     .unbatch()
                                     .enumerate()
                                     .batch({.global_batch = 10}));
  std::vector<std::int64_t> positions(10);
  std::iota(positions.begin(), positions.end(), 0);
  EXPECT_THAT(all.index, ElementsAreArray(positions));
}

TEST(Enumerate, OfAStreamCountsItsRecords) {
  const Dataset stream = Dataset::from(
      record_stream({.name = "counted", .fields = numbers(1)->info().fields, .open = [](std::uint64_t first) {
                       return [next = first](RecordWriter& record) mutable {
                         if (next >= 7) return false;
                         record.put(0, static_cast<std::int64_t>(next++));
                         return true;
                       };
                     }}));
  EXPECT_THAT(columns_of(stream.skip(2).enumerate().batch({.global_batch = 2})).index, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Enumerate, IsOneStream) {
  expect_one_stream(count_up_to(23).shuffle().enumerate().repeat(2).batch({.global_batch = 6}));
  expect_one_stream(
      count_up_to(23).enumerate().cache(memory()).shuffle().enumerate({.field = "n"}).batch({.global_batch = 6}));
  EXPECT_EQ(columns_of(count_up_to(23).shuffle().enumerate().batch({.global_batch = 6}), 2, 3).index,
            columns_of(count_up_to(23).shuffle().enumerate().batch({.global_batch = 6}), 2, 1).index);
}

TEST(Enumerate, IsPartOfThePlan) {
  const PlanParts parts{.sources = {{"numbers", numbers(23)}}};
  expect_same_stream(count_up_to(23).take(11).enumerate({.field = "n"}).shuffle().batch({.global_batch = 4}),
                     parts);
  EXPECT_THAT(count_up_to(5).enumerate().batch({.global_batch = 4}).evaluation_json(), HasSubstr("enumerate"));
  EXPECT_THAT(count_up_to(5).shuffle({.seed = 7}).enumerate().explain(),
              AllOf(HasSubstr("enumerate(field=index)  [on indices]"),
                    HasSubstr("number 'index' of shuffle(seed=7, reshuffle_each_epoch=true)"),
                    HasSubstr("-> index int64")));
  EXPECT_NE(count_up_to(5).enumerate().fingerprint(), count_up_to(5).fingerprint());
}

TEST(Enumerate, RefusesWhatHasNoNumber) {
  EXPECT_THAT(message_of([] { count_up_to(5).batch({.global_batch = 2}).enumerate().explain(); }),
              HasSubstr("before batch()"));
  EXPECT_THAT(message_of([] { count_up_to(5).enumerate().enumerate().explain(); }), HasSubstr("another name"));
  EXPECT_THAT(message_of([] { count_up_to(5).enumerate({.field = ""}).explain(); }), HasSubstr("call it index"));
  EXPECT_THAT(message_of([] { count_up_to(5).shuffle().enumerate().cache(memory()).explain(); }),
              HasSubstr("put cache() before enumerate()"));
  EXPECT_THAT(message_of([] { count_up_to(5).repeat(2).enumerate().cache(memory()).explain(); }),
              HasSubstr("put cache() before enumerate()"));
  EXPECT_THAT(message_of([] { count_up_to(5).shuffle().enumerate().filter(numbered_as("index", 0)).size(); }),
              HasSubstr("changes from epoch to epoch"));
}

}  // namespace
}  // namespace headrace::test
