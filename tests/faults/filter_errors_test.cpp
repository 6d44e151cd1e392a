// Errors that a filter meets and no record is to blame for at once: what the system refuses, a wrong
// configuration, too little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "headrace/pipeline/dataset.h"
#include "headrace/tests/faults/filter_fixture.h"

namespace headrace {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    try {
      Loader(dataset, devices, filter_options(OnError::kSkip));
      FAIL() << "no error";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("filter(two of three, version 1): "));
      EXPECT_THAT(error.what(), HasSubstr("'weight'"));
    }
  }
  EXPECT_LT(source->reads(), 200000U) << "the others are not read for it";
}

TEST(FilterFaults, AConfigErrorWithinACombinationIsToo) {
  const Dataset part = Dataset::from(test::numbers(20)).filter(two_of_three(1000, "weight"));
  EXPECT_THROW(concatenate({Dataset::from(test::numbers(5)), part}).size(), ConfigError);
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
       {Dataset::from(test::numbers(30)).filter(greedy), Dataset::from(starved).filter(two_of_three())}) {
    for (const OnError policy : {OnError::kFail, OnError::kSkip, OnError::kSubstitute}) {
      try {
        Loader(dataset.batch({.global_batch = 4}), devices, filter_options(policy));
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
