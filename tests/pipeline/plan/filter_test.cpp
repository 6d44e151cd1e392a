// filter(): which records stay, and that counting, shuffling and resuming stay exact.
#include "headrace/pipeline/dataset.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

RecordFilter multiples_of(std::int64_t divisor) {
  return {.name = "multiples of " + std::to_string(divisor),
          .keeps = [divisor](const ExampleView& record) { return record.integer("value") % divisor == 0; }};
}

std::vector<std::int64_t> in_order(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

TEST(Filter, KeepsWhatItsFunctionKeeps) {
  const Dataset dataset = Dataset::from(numbers(20)).filter(multiples_of(3));
  EXPECT_EQ(dataset.size(), 7U);
  EXPECT_EQ(dataset.batch({.global_batch = 4}).steps_per_epoch(), 2U);
  EXPECT_THAT(values_of(dataset.batch({.global_batch = 4}))[0], ElementsAre(0, 3, 6, 9, 12, 15, 18));
}

TEST(Filter, StandsAmongOtherIndexStages) {
  const Dataset base = Dataset::from(numbers(30));
  EXPECT_THAT(values_of(base.skip(10).filter(multiples_of(5)).batch({.global_batch = 4}))[0],
              ElementsAre(10, 15, 20, 25));
  EXPECT_THAT(values_of(base.filter(multiples_of(5)).skip(1).take(3).batch({.global_batch = 4}))[0],
              ElementsAre(5, 10, 15));
  EXPECT_THAT(values_of(base.shard(2, 1).filter(multiples_of(5)).batch({.global_batch = 4}))[0],
              ElementsAre(5, 15, 25));
  EXPECT_THAT(values_of(base.filter(multiples_of(5)).filter(multiples_of(2)).batch({.global_batch = 4}))[0],
              ElementsAre(0, 10, 20));
  EXPECT_THAT(values_of(base.take(6).repeat(2).filter(multiples_of(5)).batch({.global_batch = 4}))[0],
              ElementsAre(0, 5, 0, 5));
}

TEST(Filter, ComesBeforeTheShufflesItStandsBehind) {
  const Dataset base = Dataset::from(numbers(100));
  const auto before = values_of(base.filter(multiples_of(7)).shuffle().batch({.global_batch = 4}), 2);
  const auto after = values_of(base.shuffle().filter(multiples_of(7)).batch({.global_batch = 4}), 2);
  EXPECT_EQ(after, before);
  EXPECT_NE(before[0], before[1]) << "shuffled again";
  EXPECT_EQ(in_order(before[0]), in_order(before[1]));
  EXPECT_EQ(before[0].size(), 15U);
}

TEST(Filter, IsOneStream) {
  expect_one_stream(
      Dataset::from(numbers(101)).filter(multiples_of(3)).shuffle({.seed = 1}).batch({.global_batch = 5}));
  const auto source = std::make_shared<FakeSource>(60);
  expect_one_stream(
      Dataset::from(source).shuffle().repeat(2).filter(multiples_of(4)).skip(3).batch({.global_batch = 4}));
}

TEST(Filter, GivesEachKeptRecordOnce) {
  EpochContents kept;
  for (std::uint64_t record = 0; record < 500; record += 7) kept.records.push_back(record);
  expect_contents(Dataset::from(numbers(500)).filter(multiples_of(7)).shuffle().batch({.global_batch = 8}), kept,
                  3);
}

TEST(Filter, MayKeepNothing) {
  const Dataset dataset =
      Dataset::from(numbers(70)).filter({.name = "none", .keeps = [](const ExampleView&) { return false; }});
  EXPECT_EQ(dataset.size(), 0U);
  EXPECT_THAT(values_of(dataset.shuffle().batch({.global_batch = 4}))[0], ElementsAre());
}

TEST(Filter, ReadsEachRecordOnceHoweverOftenItIsAsked) {
  const auto source = std::make_shared<FakeSource>(200);
  const Dataset dataset = Dataset::from(source).filter(multiples_of(2));
  dataset.explain();
  EXPECT_EQ(source->reads(), 0U) << "explaining reads nothing";
  EXPECT_EQ(dataset.size(), 100U);
  EXPECT_EQ(dataset.shuffle().batch({.global_batch = 8}).steps_per_epoch(), 13U);
  EXPECT_EQ(source->reads(), 200U);
}

TEST(Filter, KnowsLabelsAndBytes) {
  const Dataset images = Dataset::from(noise_images(40, 2, 2));
  EXPECT_EQ(images.filter(with_labels({3, 9})).size(), 8U);
  const RecordFilter dark{.name = "dark", .keeps = [](const ExampleView& record) {
                            return std::to_integer<int>(record.bytes("image")[0]) < 128;
                          }};
  const std::uint64_t count = images.filter(dark).size();
  EXPECT_GT(count, 5U);
  EXPECT_LT(count, 35U);
}

TEST(Filter, KeepsWhatItCannotReadOrJudge) {
  const auto source = std::make_shared<FakeSource>(1000, [](std::uint64_t record) {
    if (record % 300 == 299) throw std::runtime_error("no such luck");
  });
  RecordFilter filter = multiples_of(2);
  filter.keeps = [](const ExampleView& record) {
    if (record.integer("value") == 401) throw std::runtime_error("neither");
    return record.integer("value") % 2 == 0;
  };
  const Dataset dataset = Dataset::from(source).filter(filter);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(dataset.size(), 504U);
  EXPECT_EQ(source->reads(), 1000U);
}

TEST(Filter, ThrowsTheConfigErrorOfTheFirstRecordThatHasOne) {
  const RecordFilter picky{.name = "picky", .keeps = [](const ExampleView& record) {
                             const std::int64_t value = record.integer("value");
                             if (value != 299 && value < 320) return true;
                             // Others have thrown by then, of positions behind it.
                             if (value == 299) std::this_thread::sleep_for(std::chrono::milliseconds(30));
                             throw ConfigError("not with " + std::to_string(value), "another way");
                           }};
  const Dataset dataset = Dataset::from(numbers(10000)).filter(picky);
  for (int i = 0; i < 3; ++i) {
    const ConfigError error = error_of<ConfigError>([&] { dataset.size(); });
    EXPECT_EQ(error.message(), "filter(picky, version 1): not with 299");
    EXPECT_EQ(error.hint(), "another way");
  }
}

TEST(Filter, IsPartOfTheFingerprint) {
  const Dataset base = Dataset::from(numbers(20));
  const auto of = [](const Dataset& dataset) { return dataset.batch({.global_batch = 4}).fingerprint(); };
  RecordFilter filter = multiples_of(2);
  const std::uint64_t first = of(base.filter(filter));
  EXPECT_EQ(of(base.filter(filter)), first);
  EXPECT_NE(of(base), first);
  filter.version = 2;
  EXPECT_NE(of(base.filter(filter)), first);
  EXPECT_NE(of(base.filter(multiples_of(3))), first);
  EXPECT_THAT(
      base.shuffle({.seed = 7}).filter(filter).explain(),
      HasSubstr("filter(multiples of 2, version 2)  [on indices]\nshuffle(seed=7, reshuffle_each_epoch=true)"));
}

TEST(Filter, RefusesWhatItCannotCount) {
  const Dataset base = Dataset::from(numbers(20));
  EXPECT_THROW(base.shuffle().take(3).filter(multiples_of(2)).size(), ConfigError);
  EXPECT_THROW(mix({base, base}).filter(multiples_of(2)).size(), ConfigError);
  EXPECT_THROW(concatenate({base, base.shuffle()}).filter(multiples_of(2)).size(), ConfigError);
  EXPECT_EQ(concatenate({base, base}).filter(multiples_of(2)).size(), 20U);
  EXPECT_THROW(base.filter({.name = "no function"}), ConfigError);
  EXPECT_THROW(base.filter({.keeps = [](const ExampleView&) { return true; }}), ConfigError);
  EXPECT_THROW(base.filter(with_labels({1})).size(), ConfigError) << "there is no label";
}

}  // namespace
}  // namespace headrace::test
