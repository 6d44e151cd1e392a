#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/arrow_structs.h"
#include "headrace/pipeline/dlpack.h"
#include "headrace/pipeline/dlpack_structs.h"
#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

std::int64_t pairs_of(std::uint64_t record) { return static_cast<std::int64_t>(record * 7 % 5); }

// Record r is its number, r * 7 % 5 pairs of i32, and r % 3 letters.
void put_record(std::uint64_t index, RecordWriter& record) {
  record.put(0, static_cast<std::int64_t>(index));
  const std::vector<std::int32_t> entries(static_cast<std::size_t>(2 * pairs_of(index)),
                                          static_cast<std::int32_t>(index) + 1);
  record.put(1, std::as_bytes(std::span(entries)));
  const std::string letters(index % 3, static_cast<char>('a' + index % 26));
  record.put(2, std::as_bytes(std::span(letters)));
}

// `bad` cannot be read.
SourcePtr ragged_source(std::uint64_t count, std::uint64_t bad = ~std::uint64_t{0}) {
  return generator({.name = "ragged",
                    .fields = {{.name = "value", .dtype = DType::kI64, .shape = {}},
                               {.name = "x", .dtype = DType::kI32, .shape = {Shape::kDynamic, 2}},
                               {.name = "text", .dtype = DType::kU8, .shape = {Shape::kDynamic}}},
                    .records = count,
                    .function = [bad](std::uint64_t index, RecordWriter& record) {
                      if (index == bad)
                        throw DataError(ErrorCode::kDataCorrupt, "broken", {.source = "lists", .record = index});
                      put_record(index, record);
                    }});
}
Dataset ragged_records(std::uint64_t count) { return Dataset::from(ragged_source(count)); }

// Expects of one replica's batch that row i holds what the record of its value does. Returns the values.
std::vector<std::int64_t> checked_values(Device& device, const Batch& batch) {
  const auto values = download_examples<std::int64_t>(device, batch, "value");
  const auto x = download<std::int32_t>(device, batch, "x");
  const auto offsets = download<std::int64_t>(device, batch, "x_offsets");
  const auto text = download<char>(device, batch, "text");
  const auto text_offsets = download<std::int64_t>(device, batch, "text_offsets");
  std::vector<std::int32_t> expected;
  std::vector<std::int64_t> begins{0};
  std::string letters;
  std::vector<std::int64_t> letter_begins{0};
  for (const std::int64_t value : values) {
    const auto record = static_cast<std::uint64_t>(value);
    expected.insert(expected.end(), static_cast<std::size_t>(2 * pairs_of(record)),
                    static_cast<std::int32_t>(value) + 1);
    begins.push_back(std::ssize(expected) / 2);
    letters.append(record % 3, static_cast<char>('a' + record % 26));
    letter_begins.push_back(std::ssize(letters));
  }
  // Rows of padding are empty.
  begins.resize(static_cast<std::size_t>(batch.rows()) + 1, begins.back());
  letter_begins.resize(begins.size(), letter_begins.back());
  EXPECT_EQ(x, expected);
  EXPECT_EQ(offsets, begins);
  EXPECT_EQ(std::string(text.begin(), text.end()), letters);
  EXPECT_EQ(text_offsets, letter_begins);
  EXPECT_EQ(batch.tensor("x").shape, (Shape{begins.back(), 2}));
  return values;
}

// The values of all global batches, whose content is checked.
std::vector<std::int64_t> checked_stream(const Dataset& data, DeviceGroup devices, LoaderOptions options) {
  Loader loader(data, devices, std::move(options));
  std::vector<std::int64_t> all;
  for (;;) {
    for (int r = 0; r < devices.size(); ++r) {
      const auto batch = loader.next(r);
      if (!batch) return all;
      const auto values = checked_values(devices[r], *batch);
      all.insert(all.end(), values.begin(), values.end());
    }
  }
}

TEST(RaggedBatch, HoldsTheEntriesOfItsRows) {
  const Dataset data = ragged_records(41).shuffle().ragged_batch({.global_batch = 6});
  for (const std::string& kind : {std::string("cpu"), std::string("discrete"), std::string("twin")}) {
    for (const int replicas : {1, 2, 3}) {
      const auto seen = checked_stream(data, devices_of_kind(kind, replicas),
                                       {.seed = 4, .epochs = 2, .threads = 2, .prefetch = 1});
      EXPECT_EQ(seen.size(), 82U) << kind << ", " << replicas << " replicas";
    }
  }
}

TEST(RaggedBatch, BatchesThatTakeTheirRowsAlong) {
  const Dataset data = ragged_records(41).shuffle().ragged_batch({.global_batch = 6});
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(data, devices, {.seed = 4, .epochs = 3, .threads = 2, .prefetch = 0, .owned_batches = true});
  std::vector<Batch> held;
  while (auto batch = loader.next()) held.push_back(std::move(*batch));
  ASSERT_EQ(held.size(), 21U);
  for (const Batch& batch : held) checked_values(devices[0], batch);
}

TEST(RaggedBatch, IsOneStream) {
  expect_one_stream(ragged_records(41).shuffle().repeat(2).ragged_batch({.global_batch = 6}));
  expect_one_stream(
      ragged_records(41).shuffle().ragged_batch({.global_batch = 6, .drop_remainder = true}).shuffle());
  expect_one_stream(ragged_records(41).cache(memory()).shuffle().enumerate().ragged_batch({.global_batch = 5}));
  expect_one_stream(
      concatenate({ragged_records(9).cache(memory()), ragged_records(17)})
          .ragged_batch({.global_batch = 6,
                         .fields = {{.field = "x", .max_length = 4}, {.field = "text", .max_length = 2}}}));
}

TEST(RaggedBatch, APartOfTheWorldHasOffsetsOfItsOwn) {
  const Dataset data = ragged_records(41).shuffle().ragged_batch({.global_batch = 7});
  std::vector<std::vector<std::int64_t>> parts;
  for (const int first : {0, 1, 2}) {
    parts.push_back(
        checked_stream(data, cpu_replicas(1), {.seed = 4, .world = {.total = 3, .first = first}, .threads = 2}));
  }
  EXPECT_EQ(parts[0].size() + parts[1].size() + parts[2].size(), 41U);
}

TEST(RaggedBatch, OfAStreamWhoseMaximaAreGiven) {
  const auto stream = [] {
    return Dataset::from(record_stream(
        {.name = "stream", .fields = ragged_source(1)->info().fields, .open = [](std::uint64_t first) {
           return [next = first](RecordWriter& record) mutable {
             if (next == 20) return false;
             put_record(next++, record);
             return true;
           };
         }}));
  };
  const RaggedBatchOptions given{.global_batch = 6,
                                 .fields = {{.field = "x", .max_length = 4}, {.field = "text", .max_length = 2}}};
  EXPECT_EQ(checked_stream(stream().ragged_batch(given), cpu_replicas(2), {.threads = 2}).size(), 20U);
  DeviceGroup devices = cpu_replicas(1);
  EXPECT_THAT(message_of([&] { Loader(stream().ragged_batch({}), devices); }), HasSubstr("max_length"));
}

TEST(RaggedBatch, EmptyValuesAndBatches) {
  const Dataset data = ragged_records(1).ragged_batch({.global_batch = 4});
  EXPECT_EQ(checked_stream(data, cpu_replicas(3), {.threads = 1}).size(), 1U);
  EXPECT_EQ(digests_of(data, 2, {.threads = 1}), cpu_digests_of(data, {.threads = 2}));
}

TEST(RaggedBatch, LongerAndUnreadableRecordsAreBad) {
  const Dataset data =
      Dataset::from(ragged_source(41, /*bad=*/11))
          .ragged_batch({.global_batch = 6, .fields = {{.field = "x", .max_length = 3}, {.field = "text"}}});
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(data, devices);
  EXPECT_THROW(loader.next(), DataError);
  std::size_t good = 0;
  for (std::uint64_t record = 0; record < 41; ++record) good += record != 11 && pairs_of(record) <= 3 ? 1 : 0;
  const auto left = checked_stream(data, cpu_replicas(2),
                                   {.threads = 2, .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
  EXPECT_EQ(left.size(), good);
  const auto all = checked_stream(
      data, cpu_replicas(2), {.threads = 2, .errors = {.on_error = OnError::kSubstitute, .max_bad_share = 1}});
  EXPECT_EQ(all.size(), 41U);
}

TEST(RaggedBatch, ImagesThatStayEncodedAreBytes) {
  const Dataset data =
      Dataset::from(generator({.name = "files",
                               .fields = {{.name = "image",
                                           .dtype = DType::kU8,
                                           .shape = {Shape::kDynamic, Shape::kDynamic, 3},
                                           .encoding = Encoding::kImage}},
                               .records = 3,
                               .function = [](std::uint64_t index, RecordWriter& record) {
                                 const std::string bytes(index + 1, static_cast<char>('a' + index));
                                 record.put(0, std::as_bytes(std::span(bytes)));
                               }}));
  DeviceGroup devices = test_devices(1);
  Loader loader(data.ragged_batch({.global_batch = 3, .fields = {{.field = "image"}}}), devices);
  const auto batch = loader.next();
  EXPECT_THAT(download<char>(devices[0], *batch, "image"), ElementsAre('a', 'b', 'b', 'c', 'c', 'c'));
  EXPECT_THAT(message_of([&] { data.ragged_batch({}).explain(); }), HasSubstr("no field differs in length"));
}

TEST(RaggedBatch, OtherLibrariesSeeAllEntries) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(ragged_records(5).ragged_batch({.global_batch = 7}), devices);
  const SharedBatch batch(std::move(*loader.next()));
  ASSERT_EQ(batch->examples(), 5);
  DLManagedTensorVersioned* x = to_dlpack(batch, "x");
  EXPECT_EQ(x->dl_tensor.shape[0], 10);
  x->deleter(x);
  DLManagedTensorVersioned* offsets = to_dlpack(batch, "x_offsets");
  EXPECT_EQ(offsets->dl_tensor.shape[0], 6);
  offsets->deleter(offsets);

  ArrowSchema schema;
  ArrowArray array;
  export_arrow(batch, &schema, &array);
  ASSERT_EQ(schema.n_children, 3);
  EXPECT_STREQ(schema.children[1]->format, "+L");
  EXPECT_STREQ(schema.children[1]->children[0]->format, "+w:2");
  EXPECT_STREQ(schema.children[2]->children[0]->format, "C");
  const ArrowArray& lists = *array.children[1];
  EXPECT_EQ(lists.length, 5);
  const auto* begins = static_cast<const std::int64_t*>(lists.buffers[1]);
  EXPECT_THAT(std::vector(begins, begins + 6), ElementsAre(0, 0, 2, 6, 7, 10));
  EXPECT_EQ(lists.children[0]->length, 10);
  EXPECT_EQ(lists.children[0]->children[0]->length, 20);
  array.release(&array);
  schema.release(&schema);
}

TEST(RaggedBatch, IsPartOfThePlan) {
  const PlanParts parts{.sources = {{"ragged", ragged_source(30)}}};
  const Dataset from = Dataset::from(parts.sources.at("ragged"));
  const RaggedBatchOptions options{
      .global_batch = 4, .drop_remainder = true, .fields = {{.field = "text", .max_length = 7}, {.field = "x"}}};
  expect_same_stream(from.shuffle().ragged_batch(options), parts);
  expect_same_stream(from.ragged_batch({.global_batch = 4}).shuffle().prefetch(3), parts);
  EXPECT_THAT(from.ragged_batch(options).explain(),
              AllOf(HasSubstr("ragged_batch(global_batch=4, drop_remainder=true, fields=[(field=text, "
                              "max_length=7), (field=x, max_length=0)])"),
                    HasSubstr("-> x_offsets int64 ()"), HasSubstr("-> x int32 (?, 2)")));
  EXPECT_NE(from.ragged_batch({.global_batch = 4}).fingerprint(),
            from.ragged_batch({.global_batch = 5}).fingerprint());
  EXPECT_TRUE(from.ragged_batch(options).is_ragged());
  EXPECT_FALSE(from.ragged_batch(options).unbatch().padded_batch({}).is_ragged());
  EXPECT_EQ(from.ragged_batch(options).steps_per_epoch(), 7U);
}

TEST(RaggedBatch, UnbatchUndoesIt) {
  const auto seen = checked_stream(
      ragged_records(12).ragged_batch({.global_batch = 4}).skip(1).unbatch().ragged_batch({.global_batch = 5}),
      cpu_replicas(1), {.threads = 1});
  EXPECT_THAT(seen, ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(RaggedBatch, RefusesWhatMakesNoSense) {
  const auto with = [](std::vector<RaggedField> fields) {
    return message_of(
        [&] { ragged_records(9).ragged_batch({.global_batch = 3, .fields = std::move(fields)}).explain(); });
  };
  EXPECT_THAT(with({{.field = "y"}}), HasSubstr("'y'"));
  EXPECT_THAT(with({{.field = "value"}}), HasSubstr("cannot be ragged"));
  EXPECT_THAT(with({{.field = "x"}}), HasSubstr("'text'"));
  EXPECT_THAT(with({{.field = "x", .max_length = -1}}), HasSubstr("-1"));
  EXPECT_THAT(with({{.field = "x"}, {.field = "x"}}), HasSubstr("twice"));
  EXPECT_THAT(message_of([] { ragged_records(9).ragged_batch({.global_batch = 0}); }),
              HasSubstr("at least one example"));
  EXPECT_THAT(message_of([] { Dataset::from(numbers(5)).ragged_batch({}).explain(); }), HasSubstr("use batch()"));
  EXPECT_THAT(message_of([] { ragged_records(9).batch({}).explain(); }), HasSubstr("ragged_batch()"));
  DeviceGroup devices = cpu_replicas(1);
  const Dataset processed = concatenate({ragged_records(9).cache(memory()), ragged_records(9)});
  EXPECT_THAT(message_of([&] { Loader(processed.ragged_batch({.global_batch = 3}), devices); }),
              HasSubstr("max_length"));
}

}  // namespace
}  // namespace headrace::test
