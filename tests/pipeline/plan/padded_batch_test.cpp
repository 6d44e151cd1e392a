#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

// Record r holds r % 5 pairs of i32, all of value r, and r itself.
Dataset sequences(std::uint64_t count) {
  return Dataset::from(
      generator({.name = "sequences",
                 .fields = {{.name = "id", .dtype = DType::kI64, .shape = {}},
                            {.name = "tokens", .dtype = DType::kI32, .shape = {Shape::kDynamic, 2}}},
                 .records = count,
                 .function = [](std::uint64_t index, RecordWriter& record) {
                   record.put(0, static_cast<std::int64_t>(index));
                   const std::vector<std::int32_t> tokens(index % 5 * 2, static_cast<std::int32_t>(index));
                   record.put(1, std::as_bytes(std::span(tokens)));
                 }}));
}

TEST(PaddedBatch, PadsToTheLongestAndSaysTheLengths) {
  const Dataset dataset = sequences(8).padded_batch({.global_batch = 4});
  ASSERT_EQ(dataset.fields().size(), 3U);
  EXPECT_EQ(dataset.fields()[1].shape, (Shape{4, 2}));
  EXPECT_EQ(dataset.fields()[2].name, "tokens_length");
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, {.threads = 1});
  loader.next();
  const auto batch = loader.next();
  EXPECT_THAT(download<std::int64_t>(devices[0], *batch, "tokens_length"), ElementsAre(4, 0, 1, 2));
  EXPECT_THAT(
      download<std::int32_t>(devices[0], *batch, "tokens"),
      ElementsAre(4, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 6, 6, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0));
}

TEST(PaddedBatch, PadsToAGivenLengthWithAGivenByte) {
  const Dataset dataset = sequences(3).skip(1).padded_batch(
      {.global_batch = 2, .pad = {{.field = "tokens", .length = 6, .value = 0xFF}}});
  EXPECT_EQ(dataset.fields()[1].shape, (Shape{6, 2}));
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, {.threads = 1});
  const auto batch = loader.next();
  std::vector<std::int32_t> tokens = download<std::int32_t>(devices[0], *batch, "tokens");
  tokens.resize(12);  // of the first record
  EXPECT_THAT(tokens, ElementsAre(1, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
}

TEST(PaddedBatch, IsOneStream) {
  expect_one_stream(sequences(41).shuffle().repeat(2).padded_batch({.global_batch = 6}));
  expect_one_stream(sequences(41).cache(memory()).padded_batch({.global_batch = 6}));
}

TEST(PaddedBatch, RefusesALongerRecordByName) {
  DeviceGroup devices = test_devices(1);
  Loader loader(sequences(8).padded_batch({.global_batch = 8, .pad = {{.field = "tokens", .length = 3}}}),
                devices);
  const std::string error = message_of<Error>([&] { loader.next(); });
  EXPECT_THAT(error, HasSubstr("4 entries, more than the 3"));
  EXPECT_THAT(error, HasSubstr("record 4"));
}

TEST(PaddedBatch, RefusesWhatCannotBePadded) {
  EXPECT_THAT(message_of<Error>([] { sequences(8).batch({.global_batch = 2}).explain(); }),
              HasSubstr("padded_batch()"));
  const Dataset fixed = Dataset::from(numbers(5));
  EXPECT_THAT(message_of<Error>([&] { fixed.padded_batch({}); }), HasSubstr("use batch()"));
  EXPECT_THAT(message_of<Error>([&] { fixed.padded_batch({.pad = {{.field = "value"}}}); }),
              HasSubstr("cannot be padded"));
  EXPECT_THAT(message_of<Error>([] { sequences(8).padded_batch({.pad = {{.field = "token"}}}); }),
              HasSubstr("tokens"));
}

// The records of sequences() as a stream.
Dataset streamed_sequences(std::uint64_t count) {
  return Dataset::from(
      record_stream({.name = "stream", .fields = sequences(1).fields(), .open = [count](std::uint64_t first) {
                       return [count, next = first](RecordWriter& record) mutable {
                         if (next == count) return false;
                         record.put(0, static_cast<std::int64_t>(next));
                         const std::vector<std::int32_t> tokens(next % 5 * 2, static_cast<std::int32_t>(next));
                         record.put(1, std::as_bytes(std::span(tokens)));
                         ++next;
                         return true;
                       };
                     }}));
}

std::vector<std::int32_t> all_tokens(const Dataset& data, const LoaderOptions& options) {
  DeviceGroup devices = test_devices(1);
  Loader loader(data, devices, options);
  std::vector<std::int32_t> all;
  while (const auto batch = loader.next()) {
    for (const std::int32_t token : download<std::int32_t>(devices[0], *batch, "tokens")) all.push_back(token);
  }
  return all;
}

TEST(PaddedBatch, OfAStreamWhoseLengthsAreGiven) {
  const PaddedBatchOptions options{.global_batch = 4, .pad = {{.field = "tokens", .length = 5}}};
  const LoaderOptions run{.epochs = 1, .threads = 2};
  EXPECT_EQ(all_tokens(streamed_sequences(11).padded_batch(options), run),
            all_tokens(sequences(11).padded_batch(options), run));
}

TEST(PaddedBatch, ALongerRecordOfAStreamIsBad) {
  const PaddedBatchOptions options{.global_batch = 4, .pad = {{.field = "tokens", .length = 3}}};
  LoaderOptions run{.epochs = 1, .threads = 2};
  EXPECT_THAT(message_of<Error>([&] { all_tokens(streamed_sequences(11).padded_batch(options), run); }),
              HasSubstr("field 'tokens' has 4 entries, more than the 3 it is padded to"));
  run.errors = {.on_error = OnError::kSkip, .max_bad_share = 1};
  DeviceGroup devices = test_devices(1);
  Loader loader(streamed_sequences(11).padded_batch(options), devices, run);
  std::int64_t examples = 0;
  while (const auto batch = loader.next()) examples += batch->examples();
  EXPECT_EQ(examples, 9) << "without 4 and 9";
}

TEST(PaddedBatch, AStreamDoesNotTellItsLongestRecord) {
  EXPECT_THAT(message_of<Error>([] { streamed_sequences(3).padded_batch({.global_batch = 2}); }),
              AllOf(HasSubstr("longest record of a stream"), HasSubstr("the field 'tokens' is padded")));
}

}  // namespace
}  // namespace headrace::test
