// Filters, over records and over what operations make of them, and their failures.
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/tasks/failure.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

// filter(): which records stay, and that counting, shuffling and resuming stay exact.

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

// filter() of what the stages before it leave.

RecordFilter higher_than(std::int64_t rows) {
  return {.name = "higher than " + std::to_string(rows),
          .keeps = [rows](const ExampleView& record) { return record.shape("image")[0] > rows; },
          .processed = true};
}

TEST(ProcessedFilter, SeesDecodedImages) {
  const Dataset decoded = Dataset::from(fake_jpegs(20)).decode();  // of 24 to 28 rows by turns
  EXPECT_EQ(decoded.filter(higher_than(26)).size(), 8U);
  EXPECT_EQ(decoded.filter(higher_than(28)).size(), 0U);
  EXPECT_EQ(decoded.map(center_crop(16)).filter(higher_than(15)).size(), 20U) << "what the crop leaves";
  EXPECT_EQ(decoded.map(center_crop(16)).filter(higher_than(16)).size(), 0U);
}

TEST(ProcessedFilter, SeesValuesAndFieldsThatOperationsMade) {
  const UserOperation brightest{.name = "brightest",
                                .outputs = {{.name = "brightest", .dtype = DType::kU8, .shape = {}}},
                                .function = [](UserSample& sample) {
                                  std::byte most{};
                                  for (const std::byte each : sample.bytes(0)) most = std::max(most, each);
                                  sample.put(0, {&most, 1});
                                }};
  const RecordFilter bright{.name = "bright",
                            .keeps = [](const ExampleView& record) { return record.integer("brightest") > 250; },
                            .processed = true};
  const auto source = noise_images(40, 5, 5);
  const Dataset made = Dataset::from(source).map(user_operation(brightest));
  std::uint64_t expected = 0;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto bytes = source->read(i, scratch).fields[0];
    expected += *std::max_element(bytes.begin(), bytes.end()) > std::byte{250} ? 1 : 0;
  }
  ASSERT_GT(expected, 0U);
  ASSERT_LT(expected, 40U);
  EXPECT_EQ(made.filter(bright).size(), expected);
}

TEST(ProcessedFilter, WhatCannotBeDecodedStaysAsABadRecord) {
  std::vector<std::vector<std::byte>> images;
  for (int i = 0; i < 6; ++i) images.push_back(encode_jpeg(make_picture(24 + i, 24, 3, 1)));
  images[2].resize(40);
  const Dataset kept = Dataset::from(std::make_shared<FakeSource>(images)).decode().filter(higher_than(26));
  EXPECT_EQ(kept.size(), 4U) << "three are higher, and one nobody knows";
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(kept.map(center_crop(8)).batch({.global_batch = 4}), devices);
  EXPECT_THROW(loader.next(), DataError);
}

TEST(ProcessedFilter, IsRefusedBehindRandomOperations) {
  const Dataset decoded = Dataset::from(fake_jpegs(4)).decode();
  EXPECT_THAT(error_of<ConfigError>([&] {
                decoded.map(random_resized_crop({.size = 8})).filter(higher_than(7)).size();
              }).what(),
              HasSubstr("random_resized_crop"));
}

TEST(ProcessedFilter, WhatItSeesIsPartOfTheIdentity) {
  const Dataset decoded = Dataset::from(fake_jpegs(6)).decode();
  const auto after = decoded.map(center_crop(16)).filter(higher_than(20)).map(resize(8) | center_crop(8));
  const auto before = decoded.filter(higher_than(20)).map(center_crop(16) | resize(8) | center_crop(8));
  EXPECT_NE(after.batch({}).fingerprint(), before.batch({}).fingerprint());
  EXPECT_THAT(before.explain(), HasSubstr("filter(higher than 20, version 1) of what decode() leaves"));
}

// Which records of a plan's source its filters could not judge.

Failure failure(const std::string& cause) {
  return {.what = {.code = ErrorCode::kDataCorrupt,
                   .source = "somewhere",
                   .record = 3,
                   .offset = 12,
                   .operation = "filter(f)",
                   .cause = cause},
          .hint = "mend it"};
}

TEST(FilterFailures, AreRefusedWithWhatWasFoundFirst) {
  FilterFailures filter_failures;
  EXPECT_TRUE(filter_failures.empty());
  EXPECT_NO_THROW(filter_failures.check(3));
  filter_failures.add(3, failure("first"));
  filter_failures.add(3, failure("second"));
  EXPECT_TRUE(filter_failures.contains(3));
  EXPECT_FALSE(filter_failures.contains(4));
  EXPECT_NO_THROW(filter_failures.check(4));
  const FilterError error = error_of<FilterError>([&] { filter_failures.check(3); });
  EXPECT_EQ(error.operation(), "filter(f)");
  EXPECT_EQ(error.cause(), "first");
  EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
  EXPECT_EQ(error.location().source, "somewhere");
  EXPECT_EQ(error.location().record, 3U);
  EXPECT_EQ(error.location().offset, 12U);
  EXPECT_EQ(error.hint(), "mend it");
}

TEST(FilterFailures, ChangeAnIdentityOnlyWhereThereAreAny) {
  FilterFailures one, other;
  EXPECT_EQ(one.mixed_into(5), 5U);
  one.add(3, failure("x"));
  other.add(4, failure("x"));
  EXPECT_NE(one.mixed_into(5), 5U);
  EXPECT_NE(one.mixed_into(5), other.mixed_into(5));
  FilterFailures again;
  again.add(3, failure("another cause"));
  EXPECT_EQ(one.mixed_into(5), again.mixed_into(5)) << "how a system words its errors is no matter";
}

TEST(FilterFailures, AreNumberedAsInThePlansSource) {
  const auto part = [](std::uint64_t throwing) {
    return Dataset::from(std::make_shared<FakeSource>(10))
        .filter({.name = "f", .keeps = [throwing](const ExampleView& record) {
                   if (record.integer("value") != static_cast<std::int64_t>(throwing)) return true;
                   throw std::runtime_error("no luck");
                 }});
  };
  const auto of = [](const Dataset& dataset) {
    return FilterFailures::of(make_stream_plan(dataset.plan()).index_stages);
  };
  EXPECT_TRUE(of(part(100)).empty());
  EXPECT_TRUE(of(part(4)).contains(4));
  EXPECT_TRUE(of(part(4).shuffle().take(2)).contains(4));
  const FilterFailures combined = of(concatenate({part(1), interleave({part(2), part(3)})}));
  for (std::uint64_t record = 0; record < 30; ++record) {
    EXPECT_EQ(combined.contains(record), record == 1 || record == 12 || record == 23) << record;
  }
}

}  // namespace
}  // namespace headrace::test
