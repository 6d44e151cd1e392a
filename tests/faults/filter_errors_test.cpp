// Errors that a filter meets and no record is to blame for at once: what the system refuses, a wrong
// configuration, too little memory.
#include <new>

#include "headrace/pipeline/dataset.h"
#include "headrace/tests/faults/filter_fixture.h"

namespace headrace::test {
namespace {

// Reads of a record that the system refuses so many times.
std::shared_ptr<FakeSource> refused(std::uint64_t which, int times, std::uint64_t records = kRecords) {
  auto left = std::make_shared<std::atomic<int>>(times);
  return std::make_shared<FakeSource>(records, [=](std::uint64_t record) {
    if (record != which || left->fetch_sub(1) <= 0) return;
    throw DataError(ErrorCode::kIo, "not now", {.source = "fake", .record = record});
  });
}

TEST(FilterFaults, WhatTheSystemRefusesForAMomentIsReadAgain) {
  const auto source = refused(9, 3);
  const Dataset dataset = Dataset::from(source).filter(two_of_three(1000));
  EXPECT_EQ(dataset.size(), 40U);
  EXPECT_EQ(source->reads(), kRecords + 3);
  EXPECT_THAT(skipping(dataset).bad, ElementsAre());
  EXPECT_EQ(Dataset::from(refused(10, 3)).filter(two_of_three(1000)).size(), 40U) << "read, and left out";
}

TEST(FilterFaults, WhatTheSystemGoesOnRefusingIsBadAndNotAskedForAgain) {
  const auto source = refused(9, 4);
  const Dataset dataset = Dataset::from(source).filter(two_of_three(1000));
  EXPECT_EQ(dataset.size(), 40U);
  EXPECT_EQ(source->reads(), kRecords + 3);
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset.batch({.global_batch = 4}), devices, filter_options(OnError::kSkip));
  while (loader.next()) {
  }
  EXPECT_EQ(loader.stats().bad_records, 2U);
  EXPECT_EQ(loader.stats().read_retries, 0U);
  EXPECT_THAT(skipping(dataset).bad_records(), ElementsAre(9));
  EXPECT_EQ(skipping(dataset).bad.at(0).code, ErrorCode::kIo);
}

TEST(FilterFaults, WhereNothingCanBeReadNobodyIsWaitedForLong) {
  const auto source = std::make_shared<FakeSource>(1000, [](std::uint64_t record) {
    throw DataError(ErrorCode::kNotFound, "gone", {.source = "fake", .record = record});
  });
  EXPECT_EQ(Dataset::from(source).filter(two_of_three()).size(), 1000U);
  EXPECT_LT(source->reads(), 2000U);
}

TEST(FilterFaults, AConfigErrorIsThrownAtOnceWhateverThePolicy) {
  DeviceGroup devices = test_devices(1);
  const auto source = std::make_shared<FakeSource>(200000);
  const Dataset dataset = Dataset::from(source).filter(two_of_three(1000, "weight")).batch({.global_batch = 8});
  for (int i = 0; i < 2; ++i) {
    const ConfigError error =
        error_of<ConfigError>([&] { Loader(dataset, devices, filter_options(OnError::kSkip)); });
    EXPECT_THAT(error.what(), HasSubstr("filter(two of three, version 1): "));
    EXPECT_THAT(error.what(), HasSubstr("'weight'"));
  }
  EXPECT_LT(source->reads(), 200000U) << "the others are not read for it";
}

TEST(FilterFaults, AConfigErrorWithinACombinationIsToo) {
  const Dataset part = Dataset::from(numbers(20)).filter(two_of_three(1000, "weight"));
  EXPECT_THROW(concatenate({Dataset::from(numbers(5)), part}).size(), ConfigError);
  EXPECT_THROW(zip({part}), ConfigError);
}

TEST(FilterFaults, RunningOutOfMemoryIsNobodysRecord) {
  DeviceGroup devices = test_devices(1);
  const RecordFilter greedy{.name = "greedy", .keeps = [](const ExampleView& record) {
                              if (record.integer("value") == 11) throw std::bad_alloc();
                              return true;
                            }};
  const SourcePtr starved = std::make_shared<FakeSource>(30, [](std::uint64_t record) {
    if (record == 11) throw std::bad_alloc();
  });
  for (const Dataset& dataset :
       {Dataset::from(numbers(30)).filter(greedy), Dataset::from(starved).filter(two_of_three())}) {
    for (const OnError policy : {OnError::kFail, OnError::kSkip, OnError::kSubstitute}) {
      EXPECT_EQ(
          error_of([&] { Loader(dataset.batch({.global_batch = 4}), devices, filter_options(policy)); }).code(),
          ErrorCode::kOutOfMemory);
    }
  }
}

}  // namespace

// Records that a filter could not judge, where it is one part of a combination or what it judged comes more than
// once.

namespace {

TEST(FilterFaults, ARecordAtSeveralPlacesIsBadAtAllOfThem) {
  const GivenStream stream =
      skipping(Dataset::from(rotten_at_first({6})).take(10).repeat(2).take(20).filter(two_of_three()));
  EXPECT_THAT(stream.good, ElementsAre(0, 2, 3, 5, 8, 9, 0, 2, 3, 5, 8, 9));
  EXPECT_THAT(stream.bad_records(), ElementsAre(6, 6)) << "at the second it was read";
}

TEST(FilterFaults, StandInCombinationsByTheirNumberThere) {
  const auto whole = [] { return Dataset::from(std::make_shared<FakeSource>(10)); };
  const auto part = [] { return Dataset::from(rotten_at_first()).filter(two_of_three()); };
  const auto sorted = [](Records records) {
    std::ranges::sort(records);
    return records;
  };
  for (const int threads : {1, 4}) {
    EXPECT_THAT(skipping(concatenate({whole(), part()}), threads).bad_records(), ElementsAre(17, 30, 43));
    EXPECT_THAT(skipping(interleave({whole(), part()}), threads).bad_records(), ElementsAre(17, 30, 43));
    EXPECT_THAT(sorted(skipping(mix({whole(), part()}), threads).bad_records()), ElementsAre(17, 30, 43));
    EXPECT_THAT(skipping(concatenate({whole(), concatenate({part(), part()})}), threads).bad_records(),
                ElementsAre(17, 30, 43, 77, 90, 103));
    EXPECT_THAT(skipping(concatenate({part(), whole()}).filter(two_of_three(1000)), threads).bad_records(),
                ElementsAre(7, 20, 33))
        << "a filter behind the combination";
  }
  const GivenStream stream = skipping(concatenate({whole(), part()}));
  ASSERT_FALSE(stream.bad.empty());
  EXPECT_EQ(stream.bad.front().name, "item/7") << "as the part calls it";
  EXPECT_EQ(stream.bad.front().cause, "rotten");
}

TEST(FilterFaults, AllRowsOfABatchThatCannotBeJudgedAreBad) {
  std::vector<std::byte> bytes(12 * sizeof(std::int64_t));
  bytes[6 * sizeof(std::int64_t)] = std::byte{1};
  const auto source = in_memory(
      "threes", 4,
      {Array{.field = {.name = "value", .dtype = DType::kI64, .shape = {3}}, .bytes = std::move(bytes)}});
  const RecordFilter third{.name = "third", .keeps = [](const ExampleView& record) {
                             if (record.bytes("value")[0] == std::byte{1}) throw std::runtime_error("no luck");
                             return true;
                           }};
  EXPECT_THAT(skipping(Dataset::from(source).filter(third).unbatch()).bad_records(), ElementsAre(6, 7, 8));
}

TEST(FilterFaults, OneHalfOfAZippedRecordIsEnough) {
  const auto zipped = [](const SourcePtr& source) {
    return zip({Dataset::from(source).filter(two_of_three()), Dataset::from(numbers(50))},
               {.suffixes = {"", "_2"}, .strict = false});
  };
  for (const int threads : {1, 4}) {
    const GivenStream stream = skipping(zipped(rotten_at_first()), threads);
    // Its records are the positions of what is kept: 0 2 3 5 6 7 ...
    EXPECT_THAT(stream.bad_records(), ElementsAre(5, 14, 23));
    EXPECT_EQ(stream.good.size(), 38U);
    ASSERT_EQ(stream.bad.size(), 3U);
    EXPECT_EQ(stream.bad[0].name, "item/7 + numbers[5]");
    EXPECT_EQ(stream.bad[0].cause, "rotten");
    EXPECT_EQ(stream.bad[1].operation, "filter(two of three, version 1)");
    EXPECT_EQ(stream.bad[1].cause, "no luck");
  }
  EXPECT_NE(zipped(rotten_at_first({7})).fingerprint(), zipped(rotten_at_first({10})).fingerprint())
      << "its records are others, though as many";
  EXPECT_EQ(zipped(rotten_at_first()).fingerprint(), zipped(rotten_at_first()).fingerprint());
  const Dataset behind = zipped(rotten_at_first()).filter(two_of_three(1000, "value_2"));
  EXPECT_THAT(skipping(behind).bad_records(), ElementsAre(5, 14, 23)) << "a filter behind the zip";
}

}  // namespace
}  // namespace headrace::test
