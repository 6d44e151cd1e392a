// Records that a filter cannot read or judge: bad ones of the stream, wherever the filter stands and however the
// stream is run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/combine.h"
#include "headrace/tests/faults/given_stream.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/bytes.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

using test::Bytes;
using test::FakeSource;
using test::GivenStream;
using test::Records;
using test::stream_of;
using test::TempFolder;
using test::test_devices;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kRecords = 60;
// The filter would leave out the first, and keep the others.
const std::set<std::uint64_t> kUnreadable{7, 33};
constexpr std::uint64_t kThrowing = 20;

DataError rotten(std::uint64_t record) {
  return DataError(ErrorCode::kDataCorrupt, "rotten",
                   {.source = "fake", .record = record, .offset = 100 + record});
}

// Records that can be read from the second time on.
SourcePtr rotten_at_first(const std::set<std::uint64_t>& unreadable = kUnreadable,
                          std::uint64_t records = kRecords) {
  struct Left {
    std::mutex mutex;
    std::set<std::uint64_t> records;
  };
  auto left = std::make_shared<Left>();
  left->records = unreadable;
  return std::make_shared<FakeSource>(records, [left](std::uint64_t record) {
    const std::lock_guard lock(left->mutex);
    if (left->records.erase(record) > 0) throw rotten(record);
  });
}

bool is_wanted(std::uint64_t record) { return record % 3 != 1; }

// Keeps two of three, and cannot judge one.
RecordFilter two_of_three(std::uint64_t throwing = kThrowing, const std::string& field = "value") {
  return {.name = "two of three", .keeps = [throwing, field](const RawRecord& record) {
            const auto value = static_cast<std::uint64_t>(record.integer(field));
            if (value == throwing) throw std::runtime_error("no luck");
            return is_wanted(value);
          }};
}

LoaderOptions options(OnError on_error, int threads = 2, std::uint64_t epochs = 2) {
  return {.seed = 3, .epochs = epochs, .threads = threads, .errors = {.on_error = on_error, .max_bad_share = 1}};
}

// Of one epoch in which bad records are skipped.
GivenStream skipping(const Dataset& dataset, int threads = 2) {
  return stream_of(dataset.batch({.global = 5}), options(OnError::kSkip, threads, 1));
}

// The error that the loader's `batch`-th batch is for every replica.
std::string error_of(const Dataset& dataset, int batch, int threads, int replicas) {
  DeviceGroup devices = test_devices(replicas);
  Loader loader(dataset, devices, options(OnError::kFail, threads));
  std::string text;
  for (int i = 0; i < batch; ++i) {
    for (int r = 0; r < replicas; ++r) EXPECT_TRUE(loader.next(r)) << "batches before it are handed out";
  }
  for (int r = 0; r < replicas; ++r) {
    try {
      loader.next(r);
      ADD_FAILURE() << "no error";
    } catch (const DataError& error) {
      EXPECT_TRUE(text.empty() || text == error.what());
      text = error.what();
    }
  }
  return text;
}

TEST(FilterFaults, TheErrorIsThatOfTheBatchWhereTheRecordWouldBe) {
  for (const int threads : {1, 2, 4}) {
    for (const int replicas : {1, 2}) {
      // 0 2 3 5 | 6 7
      EXPECT_EQ(error_of(Dataset::from(rotten_at_first()).filter(two_of_three()).batch({.global = 4}), 1, threads,
                         replicas),
                "fake: item/7: source read: rotten, record 7, byte offset 107");
      // 0 2 3 5 | 6 8 9 11 | 12 14 15 17 | 18 20
      EXPECT_EQ(error_of(Dataset::from(rotten_at_first({})).filter(two_of_three()).batch({.global = 4}), 3,
                         threads, replicas),
                "fake: item/20: filter(two of three, version 1): no luck, record 20");
    }
  }
}

TEST(FilterFaults, AnUnreadableRecordFailsAsItDoesWithoutAFilter) {
  const auto always = [] {
    return Dataset::from(std::make_shared<FakeSource>(kRecords, [](std::uint64_t record) {
      if (record == 5) throw rotten(record);
    }));
  };
  EXPECT_EQ(error_of(always().filter(two_of_three()).batch({.global = 3}), 1, 2, 1),
            error_of(always().batch({.global = 5}), 1, 2, 1));
}

TEST(FilterFaults, TheStreamAndItsQuarantineAreTheSameHoweverItIsRun) {
  const TempFolder folder;
  for (const OnError policy : {OnError::kSkip, OnError::kSubstitute}) {
    std::vector<BatchDigest> expected;
    Bytes lines;
    for (const int threads : {1, 2, 4}) {
      for (const int replicas : {1, 2}) {
        for (const int prefetch : {0, 3}) {
          const auto path = folder / "bad";
          LoaderOptions with = options(policy, threads);
          with.prefetch = prefetch;
          with.errors.quarantine = path;
          const Dataset dataset =
              Dataset::from(rotten_at_first()).filter(two_of_three()).shuffle({.seed = 5}).batch({.global = 8});
          const auto digests = test::digests_of(dataset, replicas, with);
          const Bytes written = read_whole_file(path);
          std::filesystem::remove(path);
          if (expected.empty()) {
            expected = digests;
            lines = written;
            ASSERT_FALSE(lines.empty());
          }
          const std::string how = std::string(to_string(policy)) + ", " + std::to_string(threads) + " threads, " +
                                  std::to_string(replicas) + " replicas, prefetch " + std::to_string(prefetch);
          EXPECT_EQ(digests, expected) << how;
          EXPECT_EQ(written, lines) << how;
        }
      }
    }
  }
}

TEST(FilterFaults, SkippedOnesStaySkippedThoughTheyCouldBeReadNow) {
  const Dataset dataset = Dataset::from(rotten_at_first()).filter(two_of_three());
  EXPECT_EQ(dataset.size(), 41U) << "two of three, and the one that could not be read";
  Records good;
  for (std::uint64_t record = 0; record < kRecords; ++record) {
    if (is_wanted(record) && record != kThrowing && !kUnreadable.contains(record)) good.push_back(record);
  }
  for (int loader = 0; loader < 2; ++loader) {
    const GivenStream stream = skipping(dataset);
    EXPECT_THAT(stream.bad_records(), ElementsAre(7, 20, 33));
    EXPECT_EQ(stream.good, good);
  }
}

TEST(FilterFaults, AreCounted) {
  const Dataset dataset = Dataset::from(rotten_at_first()).filter(two_of_three()).batch({.global = 4});
  DeviceGroup devices = test_devices(2);
  LoaderOptions with = options(OnError::kSkip);
  Loader loader(dataset, devices, with);
  while (loader.next(0) && loader.next(1)) {
  }
  EXPECT_EQ(loader.stats().bad_records, 6U) << "three in each epoch";

  with.errors.max_bad_share = 2.0 / static_cast<double>(dataset.size());
  Loader strict(dataset, devices, with);
  const auto drain = [&] {
    while (strict.next(0) && strict.next(1)) {
    }
  };
  try {
    drain();
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().record, 33U);
    EXPECT_THAT(error.what(),
                HasSubstr("3 of the " + std::to_string(dataset.size()) + " examples of an epoch are bad"));
  }
}

TEST(FilterFaults, AreNotMoreThanWasSaid) {
  RecordFilter picky{.name = "picky", .keeps = [](const RawRecord& record) -> bool {
                       if (record.integer("value") % 2 == 0) throw std::runtime_error("even");
                       return true;
                     }};
  const auto size = [&](std::uint64_t most) {
    picky.most_unjudged = most;
    return Dataset::from(test::numbers(kRecords)).filter(picky).size();
  };
  EXPECT_EQ(size(kRecords / 2), kRecords);
  try {
    size(kRecords / 2 - 1);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("more than 29 records could not be read or judged; one of them is"));
    EXPECT_THAT(error.what(), HasSubstr("even"));
    EXPECT_THAT(error.what(), HasSubstr("most_unjudged"));
    EXPECT_EQ(error.location().record % 2, 0U);
  }
}

TEST(FilterFaults, SubstitutesAreGoodOnes) {
  const Dataset dataset = Dataset::from(rotten_at_first()).filter(two_of_three()).shuffle().batch({.global = 8});
  const GivenStream stream = stream_of(dataset, options(OnError::kSubstitute, 2, 40));
  EXPECT_EQ(stream.good.size(), 40 * 41U) << "no place stays empty";
  EXPECT_EQ(stream.bad.size(), 40 * 3U);
  for (const BadRecord& bad : stream.bad) {
    ASSERT_TRUE(bad.substitute);
    EXPECT_TRUE(is_wanted(*bad.substitute));
  }
  for (const std::uint64_t record : stream.good) {
    EXPECT_FALSE(kUnreadable.contains(record) || record == kThrowing) << record;
  }
}

TEST(FilterFaults, WhereNothingCanBeJudgedSubstitutionGivesUp) {
  const RecordFilter none{.name = "none",
                          .keeps = [](const RawRecord&) -> bool { throw std::runtime_error("no"); }};
  EXPECT_THROW(
      stream_of(Dataset::from(test::numbers(30)).filter(none).batch({.global = 5}), options(OnError::kSubstitute)),
      DataError);
}

TEST(FilterFaults, AreQuarantinedWithWhatTheFilterFound) {
  const TempFolder folder;
  LoaderOptions with = options(OnError::kSkip);
  with.errors.quarantine = folder / "bad";
  test::digests_of(Dataset::from(rotten_at_first()).filter(two_of_three()).batch({.global = 8}), 1, with);
  std::vector<nlohmann::json> found;
  std::ifstream lines(folder / "bad");
  for (std::string text; std::getline(lines, text);) found.push_back(nlohmann::json::parse(text));
  ASSERT_EQ(found.size(), 3U) << "each once in two epochs";
  EXPECT_EQ(found[0].at("record"), 7);
  EXPECT_EQ(found[0].at("name"), "item/7");
  EXPECT_EQ(found[0].at("offset"), 107);
  EXPECT_EQ(found[0].at("operation"), "source read");
  EXPECT_EQ(found[0].at("cause"), "rotten");
  EXPECT_EQ(found[0].at("code"), to_string(ErrorCode::kDataCorrupt));
  EXPECT_EQ(found[1].at("record"), 20);
  EXPECT_FALSE(found[1].contains("offset"));
  EXPECT_EQ(found[1].at("operation"), "filter(two of three, version 1)");
  EXPECT_EQ(found[1].at("cause"), "no luck");
  EXPECT_EQ(found[2].at("record"), 33);
}

TEST(FilterFaults, ACacheThatHoldsTheRecordIsNotAsked) {
  const auto cache = memory();
  test::digests_of(Dataset::from(rotten_at_first({})).cache(cache).batch({.global = 8}), 1, {});
  ASSERT_EQ(cache->counters().records, kRecords);
  const Dataset dataset = Dataset::from(rotten_at_first()).filter(two_of_three()).cache(cache);
  EXPECT_THAT(skipping(dataset).bad_records(), ElementsAre(7, 20, 33));
}

TEST(FilterFaults, RowsThatAreOnlyCopiedAreNoException) {
  const Dataset dataset = Dataset::from(test::numbers(kRecords)).filter(two_of_three());
  EXPECT_THAT(skipping(dataset).bad_records(), ElementsAre(20));
}

TEST(FilterFaults, ALaterFilterDoesNotLeaveThemOut) {
  const RecordFilter even{.name = "even",
                          .keeps = [](const RawRecord& record) { return record.integer("value") % 2 == 0; }};
  const GivenStream stream = skipping(Dataset::from(rotten_at_first()).filter(two_of_three()).filter(even));
  EXPECT_THAT(stream.bad_records(), ElementsAre(7, 20, 33));
  for (const BadRecord& bad : stream.bad) EXPECT_EQ(bad.operation.find("even"), std::string::npos);
  for (const std::uint64_t record : stream.good) EXPECT_TRUE(is_wanted(record) && record % 2 == 0) << record;
}

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
  const RecordFilter third{.name = "third", .keeps = [](const RawRecord& record) {
                             if (record.bytes("value")[0] == std::byte{1}) throw std::runtime_error("no luck");
                             return true;
                           }};
  EXPECT_THAT(skipping(Dataset::from(source).filter(third).unbatch()).bad_records(), ElementsAre(6, 7, 8));
}

TEST(FilterFaults, OneHalfOfAZippedRecordIsEnough) {
  const auto zipped = [](const SourcePtr& source) {
    return zip({Dataset::from(source).filter(two_of_three()), Dataset::from(test::numbers(50))},
               {.suffixes = {"", "_2"}});
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

TEST(FilterFaults, AResumedStreamHasTheSame) {
  const auto dataset = [] {
    return Dataset::from(rotten_at_first()).filter(two_of_three()).shuffle().batch({.global = 8});
  };
  const auto whole = test::cpu_digests_of(dataset(), options(OnError::kSkip));
  DeviceGroup devices = test_devices(1);
  LoaderState state = Loader(dataset(), devices, options(OnError::kSkip)).state();
  for (std::size_t step = 0; step < whole.size(); ++step) {
    state.sequence = step;
    LoaderOptions with = options(OnError::kSkip, 3);
    with.start = state;
    EXPECT_EQ(test::digests_of(dataset(), 2, with),
              std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()));
  }
}

TEST(FilterFaults, AStateBelongsToWhatWasJudged) {
  const auto with_throwing = [](std::uint64_t throwing) {
    return Dataset::from(rotten_at_first({})).filter(two_of_three(throwing)).batch({.global = 8});
  };
  DeviceGroup devices = test_devices(1);
  const auto state_of = [&](std::uint64_t throwing) {
    return Loader(with_throwing(throwing), devices, options(OnError::kSkip)).state();
  };
  EXPECT_EQ(state_of(1000).fingerprint, mix_seed(with_throwing(1000).fingerprint(), 3)) << "nothing was bad";
  EXPECT_EQ(state_of(22), state_of(22));
  EXPECT_NE(state_of(22), state_of(25));
  LoaderOptions with = options(OnError::kSkip);
  with.start = state_of(1000);
  EXPECT_THROW(Loader(with_throwing(22), devices, with), ConfigError)
      << "record 22 would have been left out: all places behind it are others";
}

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
  Loader loader(dataset.batch({.global = 4}), devices, options(OnError::kSkip));
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
  const Dataset dataset = Dataset::from(source).filter(two_of_three(1000, "weight")).batch({.global = 8});
  for (int i = 0; i < 2; ++i) {
    try {
      Loader(dataset, devices, options(OnError::kSkip));
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
  const RecordFilter greedy{.name = "greedy", .keeps = [](const RawRecord& record) {
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
        Loader(dataset.batch({.global = 4}), devices, options(policy));
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      }
    }
  }
}

// Any filter of any source in any place: what is handed out is what was judged and kept, what is bad is what was
// not judged, at one thread and at four.
TEST(FilterFaults, NothingIsLostAndNothingIsGoodThatWasNotJudged) {
  for (std::uint64_t trial = 0; trial < 40; ++trial) {
    Philox random({.seed = 77, .record = trial});
    const std::uint64_t records = 20 + random.next_u32() % 300;
    const std::uint64_t throwing = random.next_u32() % records;
    std::set<std::uint64_t> unreadable;
    for (std::uint32_t i = random.next_u32() % 6; i > 0; --i) unreadable.insert(random.next_u32() % records);
    const std::uint64_t first = random.next_u32() % 2 * 13;
    const bool shuffled = random.next_u32() % 2 == 0;
    std::set<std::uint64_t> good, bad;
    for (std::uint64_t record = 0; record < records; ++record) {
      const bool judged = record != throwing && !unreadable.contains(record);
      if (judged && is_wanted(record)) good.insert(first + record);
      if (!judged) bad.insert(first + record);
    }
    for (std::uint64_t record = 0; record < first; ++record) good.insert(record);
    for (const int threads : {1, 4}) {
      Dataset dataset = Dataset::from(rotten_at_first(unreadable, records)).filter(two_of_three(throwing));
      if (first > 0) dataset = concatenate({Dataset::from(test::numbers(first)), dataset});
      if (shuffled) dataset = dataset.shuffle({.seed = trial});
      const GivenStream stream = skipping(dataset, threads);
      const Records found_bad = stream.bad_records();
      EXPECT_EQ(stream.good.size(), good.size()) << "trial " << trial;
      EXPECT_EQ(std::set(stream.good.begin(), stream.good.end()), good) << "trial " << trial;
      EXPECT_EQ(found_bad.size(), bad.size()) << "trial " << trial;
      EXPECT_EQ(std::set(found_bad.begin(), found_bad.end()), bad) << "trial " << trial;
    }
  }
}

}  // namespace
}  // namespace headrace
