// select() and enumerate(): records by number, and their numbers.
#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kDraws = 1 << 20;

// value -> value * kDraws + a random number below kDraws.
Operations draw() {
  return user_map(
      {.name = "draw",
       .field = "value",
       .output = {.dtype = DType::kI64, .shape = {}},
       .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox& random) {
         std::int64_t value = 0;
         std::memcpy(&value, in.data(), sizeof value);
         value = value * kDraws + random.below(kDraws);
         std::memcpy(out.data(), &value, sizeof value);
       }});
}

std::vector<std::int64_t> epoch_of(const Dataset& dataset) { return values_of(dataset).front(); }

TEST(Select, ChoosesRecordsInTheOrderGiven) {
  const Dataset ten = Dataset::from(numbers(10));
  EXPECT_THAT(epoch_of(ten.select({7, 0, 7, 9}).batch({.global_batch = 3})), ElementsAre(7, 0, 7, 9));
  EXPECT_THAT(epoch_of(ten.skip(2).select({0, 7}).batch({.global_batch = 3})), ElementsAre(2, 9));
  EXPECT_THAT(epoch_of(ten.select({5, 6, 8}).select({2, 0}).batch({.global_batch = 3})), ElementsAre(8, 5));
  EXPECT_EQ(ten.select({}).size(), 0U);
  EXPECT_EQ(ten.select({3, 3, 3}).repeat(2).size(), 6U);
}

TEST(Select, AfterAShuffleChoosesPositions) {
  const Dataset shuffled = Dataset::from(numbers(50)).shuffle();
  const auto all = values_of(shuffled.batch({.global_batch = 50}), 2);
  const auto chosen = values_of(shuffled.select({4, 49, 4}).batch({.global_batch = 3}), 2);
  for (const std::size_t epoch : {0U, 1U})
    EXPECT_THAT(chosen[epoch], ElementsAre(all[epoch][4], all[epoch][49], all[epoch][4]));
}

TEST(Select, AfterBatchChoosesWholeBatches) {
  const Dataset batches = Dataset::from(numbers(10)).batch({.global_batch = 4});
  EXPECT_THAT(epoch_of(batches.select({2, 0, 2})), ElementsAre(8, 9, 0, 1, 2, 3, 8, 9));
  EXPECT_EQ(batches.select({2, 0, 2}).steps_per_epoch(), 3U);
  EXPECT_EQ(batches.select({2, 0, 2}).size(), 8U);
  EXPECT_THAT(epoch_of(batches.select({2, 0}).unbatch().batch({.global_batch = 5})),
              ElementsAre(8, 9, 0, 1, 2, 3));
  EXPECT_THAT(message_of([&] { batches.select({3}).steps_per_epoch(); }), HasSubstr("there are 3"));
}

TEST(Select, IsOneStream) {
  const Dataset data = Dataset::from(numbers(40)).map(draw());
  std::vector<std::uint64_t> list;
  for (std::uint64_t i = 0; i < 37; ++i) list.push_back(i * i % 40);
  expect_one_stream(data.select(list).batch({.global_batch = 5}));
  expect_one_stream(Dataset::from(numbers(40))
                        .cache(memory())
                        .map(draw())
                        .select(list)
                        .shuffle()
                        .repeat(2)
                        .batch({.global_batch = 7}));
  expect_one_stream(data.shuffle().select(list).skip(3).batch({.global_batch = 5}));
  expect_one_stream(data.shuffle().batch({.global_batch = 6}).select({6, 1, 1, 0, 5, 6}));
  expect_one_stream(
      data.batch({.global_batch = 6}).select({6, 1, 1, 0}).unbatch().shuffle().batch({.global_batch = 4}));
  expect_one_stream(concatenate({data.select(list), data.select({3, 3, 9})}).batch({.global_batch = 8}));
}

TEST(Select, RandomOperationsTreatARepeatedRecordDifferently) {
  const Dataset data = Dataset::from(numbers(10)).map(draw());
  const auto epochs = values_of(data.select({5, 2, 5, 5}).batch({.global_batch = 4}), 3);
  std::set<std::int64_t> different;
  for (const auto& epoch : epochs) different.insert(epoch.begin(), epoch.end());
  EXPECT_EQ(different.size(), 12U);
  EXPECT_EQ(values_of(data.select({5, 2}).batch({.global_batch = 2})).front()[0],
            values_of(data.batch({.global_batch = 10})).front()[5]);
}

TEST(Select, BadNumbersAreNamed) {
  const Dataset ten = Dataset::from(numbers(10));
  EXPECT_THAT(message_of([&] {
                ten.select({3, 9, 10, 11}).size();
              }),
              AllOf(HasSubstr("number 10, at place 2 of the list"), HasSubstr("there are 10"),
                    HasSubstr("numbers go from 0 to 9")));
  EXPECT_THAT(message_of([&] { ten.take(0).select({0}).size(); }), HasSubstr("there are 0"));
  DeviceGroup devices = test_devices(1);
  EXPECT_THAT(message_of([&] { Loader(ten.select({~std::uint64_t{0}}).batch({.global_batch = 1}), devices, {}); }),
              HasSubstr("number 18446744073709551615"));
}

TEST(Select, AStreamHasNoRecordNumbers) {
  const Dataset stream = Dataset::from(
      record_stream({.name = "stream", .fields = numbers(1)->info().fields, .open = [](std::uint64_t) {
                       return [](RecordWriter&) { return false; };
                     }}));
  EXPECT_THAT(message_of([&] { stream.select({1}).explain(); }),
              AllOf(HasSubstr("select(1)"), HasSubstr("a stream has no record numbers")));
}

TEST(Select, IsDescribedByItsListOrTheHashOfALongOne) {
  const Dataset many = Dataset::from(numbers(100));
  EXPECT_THAT(many.select({7, 0, 7}).explain(), HasSubstr("select(7, 0, 7)  [on indices]\n"));
  EXPECT_THAT(many.batch({.global_batch = 2}).select({1}).explain(), HasSubstr("select(1)  [on batches]\n"));
  std::vector<std::uint64_t> list{4, 17, 9, 1, 2, 3, 5, 6, 7};
  EXPECT_THAT(many.select(list).explain(), HasSubstr("select(4, 17, 9, ...; 9 numbers, list "));
  const std::uint64_t fingerprint = many.select(list).fingerprint();
  EXPECT_EQ(many.select(list).fingerprint(), fingerprint);
  list.back() = 8;
  EXPECT_NE(many.select(list).fingerprint(), fingerprint);
}

TEST(Select, NumbersOfRepeatedRecordsAreNotCached) {
  const Dataset ten = Dataset::from(numbers(10));
  EXPECT_EQ(ten.select({4, 5}).enumerate().cache(memory()).size(), 2U);
  EXPECT_THAT(message_of([&] {
                ten.select({4, 4}).enumerate().cache(memory()).size();
              }),
              HasSubstr("repeated records"));
}

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
