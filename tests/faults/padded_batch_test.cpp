// Records that the pass which finds the longest one cannot read: bad ones of the stream.
#include <new>

#include "headrace/tests/faults/given_stream.h"

namespace headrace::test {
namespace {

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
