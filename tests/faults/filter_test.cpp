// Records that a filter cannot read or judge: bad ones of the stream, wherever the filter stands and however the
// stream is run.
#include <nlohmann/json.hpp>

#include "headrace/pipeline/dataset.h"
#include "headrace/tests/faults/filter_fixture.h"

namespace headrace::test {
namespace {

TEST(FilterFaults, TheErrorIsThatOfTheBatchWhereTheRecordWouldBe) {
  for (const int threads : {1, 2, 4}) {
    for (const int replicas : {1, 2}) {
      // 0 2 3 5 | 6 7
      EXPECT_EQ(
          error_of_stream(Dataset::from(rotten_at_first()).filter(two_of_three()).batch({.global_batch = 4}), 1,
                          threads, replicas),
          "fake: item/7: source read: rotten, record 7, byte offset 107 (repair or remove the record, or pass "
          "over bad ones: ErrorPolicy::on_error = skip)");
      // 0 2 3 5 | 6 8 9 11 | 12 14 15 17 | 18 20
      EXPECT_EQ(
          error_of_stream(Dataset::from(rotten_at_first({})).filter(two_of_three()).batch({.global_batch = 4}), 3,
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
  EXPECT_EQ(error_of_stream(always().filter(two_of_three()).batch({.global_batch = 3}), 1, 2, 1),
            error_of_stream(always().batch({.global_batch = 5}), 1, 2, 1));
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
          LoaderOptions with = filter_options(policy, threads);
          with.prefetch = prefetch;
          with.errors.quarantine = path;
          const Dataset dataset = Dataset::from(rotten_at_first())
                                      .filter(two_of_three())
                                      .shuffle({.seed = 5})
                                      .batch({.global_batch = 8});
          const auto digests = digests_of(dataset, replicas, with);
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
  const Dataset dataset = Dataset::from(rotten_at_first()).filter(two_of_three()).batch({.global_batch = 4});
  DeviceGroup devices = test_devices(2);
  LoaderOptions with = filter_options(OnError::kSkip);
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
  const DataError error = error_of<DataError>([&] { drain(); });
  EXPECT_EQ(error.location().record, 33U);
  EXPECT_THAT(error.what(),
              HasSubstr("3 of the " + std::to_string(dataset.size()) + " examples of an epoch are bad"));
}

TEST(FilterFaults, AreNotMoreThanWasSaid) {
  RecordFilter picky{.name = "picky", .keeps = [](const ExampleView& record) -> bool {
                       if (record.integer("value") % 2 == 0) throw std::runtime_error("even");
                       return true;
                     }};
  const auto size = [&](std::uint64_t most) {
    picky.max_failures = most;
    return Dataset::from(numbers(kRecords)).filter(picky).size();
  };
  EXPECT_EQ(size(kRecords / 2), kRecords);
  const DataError error = error_of<DataError>([&] { size(kRecords / 2 - 1); });
  EXPECT_THAT(error.what(), HasSubstr("more than 29 records could not be read or judged; one of them is"));
  EXPECT_THAT(error.what(), HasSubstr("even"));
  EXPECT_THAT(error.what(), HasSubstr("max_failures"));
  EXPECT_EQ(error.location().record % 2, 0U);
}

TEST(FilterFaults, SubstitutesAreGoodOnes) {
  const Dataset dataset =
      Dataset::from(rotten_at_first()).filter(two_of_three()).shuffle().batch({.global_batch = 8});
  const GivenStream stream = stream_of(dataset, filter_options(OnError::kSubstitute, 2, 40));
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
                          .keeps = [](const ExampleView&) -> bool { throw std::runtime_error("no"); }};
  test_devices(1);  // skips here where there are none: EXPECT_THROW takes a skip for a wrong exception
  EXPECT_THROW(stream_of(Dataset::from(numbers(30)).filter(none).batch({.global_batch = 5}),
                         filter_options(OnError::kSubstitute)),
               DataError);
}

TEST(FilterFaults, AreQuarantinedWithWhatTheFilterFound) {
  const TempFolder folder;
  LoaderOptions with = filter_options(OnError::kSkip);
  with.errors.quarantine = folder / "bad";
  digests_of(Dataset::from(rotten_at_first()).filter(two_of_three()).batch({.global_batch = 8}), 1, with);
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
  digests_of(Dataset::from(rotten_at_first({})).cache(cache).batch({.global_batch = 8}), 1, {});
  ASSERT_EQ(cache->counters().records, kRecords);
  const Dataset dataset = Dataset::from(rotten_at_first()).filter(two_of_three()).cache(cache);
  EXPECT_THAT(skipping(dataset).bad_records(), ElementsAre(7, 20, 33));
}

TEST(FilterFaults, RowsThatAreOnlyCopiedAreNoException) {
  const Dataset dataset = Dataset::from(numbers(kRecords)).filter(two_of_three());
  EXPECT_THAT(skipping(dataset).bad_records(), ElementsAre(20));
}

TEST(FilterFaults, ALaterFilterDoesNotLeaveThemOut) {
  const RecordFilter even{.name = "even",
                          .keeps = [](const ExampleView& record) { return record.integer("value") % 2 == 0; }};
  const GivenStream stream = skipping(Dataset::from(rotten_at_first()).filter(two_of_three()).filter(even));
  EXPECT_THAT(stream.bad_records(), ElementsAre(7, 20, 33));
  for (const BadRecord& bad : stream.bad) EXPECT_EQ(bad.operation.find("even"), std::string::npos);
  for (const std::uint64_t record : stream.good) EXPECT_TRUE(is_wanted(record) && record % 2 == 0) << record;
}

TEST(FilterFaults, AResumedStreamHasTheSame) {
  const auto dataset = [] {
    return Dataset::from(rotten_at_first()).filter(two_of_three()).shuffle().batch({.global_batch = 8});
  };
  const auto whole = cpu_digests_of(dataset(), filter_options(OnError::kSkip));
  DeviceGroup devices = test_devices(1);
  LoaderState state = Loader(dataset(), devices, filter_options(OnError::kSkip)).state();
  for (std::size_t step = 0; step < whole.size(); ++step) {
    state.sequence = step;
    LoaderOptions with = filter_options(OnError::kSkip, 3);
    with.start = state;
    EXPECT_EQ(digests_of(dataset(), 2, with),
              std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()));
  }
}

TEST(FilterFaults, AStateBelongsToWhatWasJudged) {
  const auto with_throwing = [](std::uint64_t throwing) {
    return Dataset::from(rotten_at_first({})).filter(two_of_three(throwing)).batch({.global_batch = 8});
  };
  DeviceGroup devices = test_devices(1);
  const auto state_of = [&](std::uint64_t throwing) {
    return Loader(with_throwing(throwing), devices, filter_options(OnError::kSkip)).state();
  };
  EXPECT_EQ(state_of(1000).fingerprint, mix_seed(with_throwing(1000).fingerprint(), 3)) << "nothing was bad";
  EXPECT_EQ(state_of(22), state_of(22));
  EXPECT_NE(state_of(22), state_of(25));
  LoaderOptions with = filter_options(OnError::kSkip);
  with.start = state_of(1000);
  EXPECT_THROW(Loader(with_throwing(22), devices, with), ConfigError)
      << "record 22 would have been left out: all places behind it are others";
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
      if (first > 0) dataset = concatenate({Dataset::from(numbers(first)), dataset});
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
}  // namespace headrace::test
