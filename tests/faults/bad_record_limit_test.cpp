// How many records may be bad, and batches that are padded.
#include <new>

#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/tests/faults/given_stream.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

// How many bad records a stream bears: exactly ErrorPolicy::max_bad_share of an epoch, however it is run.

// 60 records; bad are those that `is_bad` says.
Dataset numbers_where(std::function<bool(std::uint64_t)> is_bad, std::int64_t global = 10) {
  const auto source = std::make_shared<FakeSource>(60, [is_bad = std::move(is_bad)](std::uint64_t record) {
    if (!is_bad(record)) return;
    throw DataError(ErrorCode::kDataCorrupt, "rotten", {.source = "fake", .record = record, .offset = 8 * record});
  });
  return Dataset::from(source).batch({.global_batch = global});
}

Dataset every_tenth_bad(std::int64_t global = 10) {
  return numbers_where([](std::uint64_t record) { return record % 10 == 7; }, global);
}

LoaderOptions limit_options(double share, OnError on_error = OnError::kSkip) {
  return {.seed = 3, .epochs = 3, .errors = {.on_error = on_error, .max_bad_share = share}};
}

// The error that ends the stream; empty where it ends well.
std::string error_under(const Dataset& dataset, const LoaderOptions& with, int replicas = 1) {
  DeviceGroup devices = test_devices(replicas);
  Loader loader(dataset, devices, with);
  return message_of<DataError>([&] { digests_of(loader, devices); });
}

TEST(BadRecordLimit, IsTheShareOfTheWhole) {
  struct Case {
    double share;
    std::uint64_t size, max_bad;
  };
  for (const auto& [share, size, max_bad] :
       {Case{0, 100, 0}, Case{1, 100, 100}, Case{0.01, 60, 0}, Case{0.01, 100, 1}, Case{0.05, 60, 3},
        Case{0.29, 100, 29}, Case{0.57, 100, 57}, Case{0.07, 100, 7}, Case{1e-3, 1'281'167, 1281},
        Case{0.3, 10, 3}, Case{0.5, 0, 0}}) {
    EXPECT_EQ(BadRecordLimit({.max_bad_share = share}, size, "records").max_bad(), max_bad)
        << share << " " << size;
  }
}

TEST(BadRecordLimit, IsAShare) {
  for (const double share : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(BadRecordLimit({.max_bad_share = share}, 10, "records"), ConfigError);
    DeviceGroup devices = test_devices(1);
    EXPECT_THROW(Loader(every_tenth_bad(), devices, limit_options(share)), ConfigError);
  }
}

TEST(BadRecordLimit, EndsTheStreamAtTheSameRecordHoweverItIsRun) {
  for (const OnError policy : {OnError::kSkip, OnError::kSubstitute}) {
    for (const std::int64_t global : {3, 10, 60, 100}) {
      for (const int threads : {1, 4}) {
        for (const int prefetch : {0, 1, 8}) {
          for (const int replicas : {1, 3}) {
            LoaderOptions with = limit_options(0.05, policy);
            with.threads = threads;
            with.prefetch = prefetch;
            EXPECT_EQ(error_under(every_tenth_bad(global), with, replicas),
                      "fake: 4 of the 60 examples of an epoch are bad, ErrorPolicy::max_bad_share = 0.05 allows "
                      "3; the last: "
                      "item/37: source read: rotten, record 37, byte offset 296 (list the bad ones with "
                      "ErrorPolicy::quarantine; mend them or leave them out, or allow more with "
                      "ErrorPolicy::max_bad_share)");
          }
        }
      }
    }
  }
}

TEST(BadRecordLimit, AllReplicasAreRefusedTheSameBatch) {
  DeviceGroup devices = test_devices(2);
  Loader loader(every_tenth_bad(), devices, limit_options(0.05));
  for (int batch = 0; batch < 3; ++batch) {
    for (const int replica : {0, 1}) EXPECT_TRUE(loader.next(replica));
  }
  for (const int replica : {0, 1}) {
    EXPECT_THROW(loader.next(replica), DataError);
    const Error error = error_of([&] { loader.next(replica); });
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
    EXPECT_THAT(error.what(), StartsWith("the stream ended with an error: fake: 4 of the 60 examples"));
  }
}

TEST(BadRecordLimit, ZeroAllowsNoneAndOneAllowsAny) {
  EXPECT_THAT(error_under(every_tenth_bad(), limit_options(0)),
              HasSubstr("1 of the 60 examples of an epoch is bad, ErrorPolicy::max_bad_share = 0 allows none; the "
                        "last: item/7"));
  const Dataset all_but_one = numbers_where([](std::uint64_t record) { return record != 30; });
  EXPECT_EQ(error_under(all_but_one, limit_options(1)), "");
}

TEST(BadRecordLimit, IsCountedAnewInEveryEpoch) {
  EXPECT_EQ(error_under(every_tenth_bad(), limit_options(0.1)), "") << "6 of 60 in each of 3 epochs";
  EXPECT_EQ(error_under(every_tenth_bad(7), limit_options(0.1)), "");
}

TEST(BadRecordLimit, NamesTheQuarantineFile) {
  const TempFolder folder;
  LoaderOptions with = limit_options(0);
  with.errors.quarantine = folder / "bad.jsonl";
  EXPECT_THAT(error_under(every_tenth_bad(), with),
              HasSubstr("(the bad ones are listed in " + (folder / "bad.jsonl").string() +
                        "; mend them or leave them out, or allow more with ErrorPolicy::max_bad_share"));
}

TEST(BadRecordLimit, AnEpochOfNothingElseIsAnError) {
  const Dataset none_good = numbers_where([](std::uint64_t) { return true; });
  for (const int threads : {1, 4}) {
    LoaderOptions with = limit_options(1);
    with.threads = threads;
    EXPECT_EQ(
        error_under(none_good, with),
        "fake: not one of the 60 examples of an epoch could be used; the last: item/59: source read: rotten, "
        "record 59, byte offset 472 (list the bad ones with ErrorPolicy::quarantine; mend "
        "them or leave them out)");
  }
}

TEST(BadRecordLimit, ALoaderThatStartsWithinAnEpochKnowsNothingOfItsBeginning) {
  const Dataset first_good = numbers_where([](std::uint64_t record) { return record >= 10; });
  DeviceGroup devices = test_devices(1);
  LoaderOptions with = limit_options(1);
  with.epochs = 1;
  with.start = Loader(first_good, devices, with).state();
  with.start->sequence = 1;
  EXPECT_EQ(error_under(first_good, with), "");
}

TEST(BadRecordTally, CountsEachRecordOnce) {
  const auto tally = std::make_shared<BadRecordTally>();
  LoaderOptions with = limit_options(1);
  with.errors.tally = tally;
  EXPECT_EQ(tally->count().records, 0U);
  EXPECT_EQ(error_under(every_tenth_bad(), with, 2), "");
  EXPECT_EQ(error_under(every_tenth_bad(), with), "") << "another loader of the same source";
  EXPECT_EQ(tally->count().bad, 6U);
  EXPECT_EQ(tally->count().records, 60U);
  EXPECT_EQ(tally->count().first->record, 7U);
}

// Records that the pass which finds the longest one cannot read: bad ones of the stream.

// Record r holds r % 5 pairs of i32, but for those that are broken.
Dataset sequences(std::uint64_t count, std::function<void(std::uint64_t, RecordWriter&)> breaks) {
  return Dataset::from(
      generator({.name = "sequences",
                 .fields = {{.name = "tokens", .dtype = DType::kI32, .shape = {Shape::kDynamic, 2}}},
                 .records = count,
                 .function = [breaks](std::uint64_t index, RecordWriter& record) {
                   const std::vector<std::int32_t> tokens(index % 5 * 2);
                   record.put(0, std::as_bytes(std::span(tokens)));
                   breaks(index, record);
                 }}));
}

// Two of which one is the longest, and one whose bytes are no whole entries.
Dataset partly_broken() {
  return sequences(9, [](std::uint64_t index, RecordWriter& record) {
    if (index == 4 || index == 5) throw std::runtime_error("no luck");
    const std::vector<std::byte> odd(100 * 8 + 1);
    if (index == 7) record.put(0, odd);
  });
}

TEST(PaddedBatchFaults, RecordsThatCannotBeMeasuredAreBadOnesOfTheStream) {
  const Dataset dataset = partly_broken().padded_batch({.global_batch = 3});
  EXPECT_EQ(dataset.fields()[0].shape, (Shape{3, 2})) << "the longest of those that can be read";
  for (const int threads : {1, 4}) {
    const GivenStream stream =
        stream_of(dataset, {.threads = threads, .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
    EXPECT_THAT(stream.good, ElementsAre(0, 1, 2, 3, 6, 8));
    EXPECT_THAT(stream.bad_records(), ElementsAre(4, 5, 7));
  }
}

TEST(PaddedBatchFaults, TheErrorIsThatOfTheBatch) {
  DeviceGroup devices = test_devices(1);
  Loader loader(partly_broken().padded_batch({.global_batch = 3}), devices);
  EXPECT_TRUE(loader.next());
  const DataError error = error_of<DataError>([&] { loader.next(); });
  EXPECT_EQ(error.location().record, 4U);
  EXPECT_THAT(error.what(), HasSubstr("no luck"));
}

TEST(PaddedBatchFaults, WhereNoneCanBeReadThereIsStillALength) {
  const Dataset none = sequences(4, [](std::uint64_t, RecordWriter&) { throw std::runtime_error("no luck"); });
  EXPECT_EQ(none.padded_batch({}).fields()[0].shape, (Shape{1, 2}));
}

TEST(PaddedBatchFaults, RunningOutOfMemoryIsNobodysRecord) {
  const Dataset starved = sequences(300, [](std::uint64_t index, RecordWriter&) {
    if (index == 211) throw std::bad_alloc();
  });
  EXPECT_EQ(error_of([&] { starved.padded_batch({}); }).code(), ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace headrace::test
