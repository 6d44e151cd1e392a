#include <ranges>

#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

std::int64_t list_length(std::uint64_t record) { return static_cast<std::int64_t>(record * 7 % 13); }

SourcePtr list_source(std::uint64_t count, std::uint64_t bad = ~std::uint64_t{0}) {
  return generator({.name = "tokens",
                    .fields = {{.name = "value", .dtype = DType::kI64, .shape = {}},
                               {.name = "x", .dtype = DType::kI32, .shape = {Shape::kDynamic, 2}}},
                    .records = count,
                    .function = [bad](std::uint64_t index, RecordWriter& record) {
                      if (index == bad)
                        throw DataError(ErrorCode::kDataCorrupt, "broken", {.source = "lists", .record = index});
                      record.put(0, static_cast<std::int64_t>(index));
                      const std::vector<std::int32_t> entries(static_cast<std::size_t>(2 * list_length(index)),
                                                              static_cast<std::int32_t>(index) + 1);
                      record.put(1, std::as_bytes(std::span(entries)));
                    }});
}
Dataset listed_rows(std::uint64_t count) { return Dataset::from(list_source(count)); }

BucketOptions in_buckets(bool drop_remainder = false) {
  return {.field = "x", .boundaries = {3, 8}, .batch_sizes = {5, 3, 2}, .drop_remainder = drop_remainder};
}

// One global batch: the values, the extents of x, and its elements.
struct Seen {
  std::vector<std::int64_t> values, lengths;
  Shape shape;
  std::vector<std::int32_t> x;
  std::uint32_t bucket = 0;
};

std::vector<Seen> bucketed_batches_of(const Dataset& data, LoaderOptions options = {.seed = 4, .threads = 2},
                                      int replicas = 1) {
  DeviceGroup devices = cpu_replicas(replicas);
  Loader loader(data, devices, std::move(options));
  std::vector<Seen> all;
  for (;;) {
    Seen seen;
    for (int r = 0; r < replicas; ++r) {
      const auto batch = loader.next(r);
      if (!batch) return all;
      const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
      append(seen.values, download_examples<std::int64_t>(devices[r], *batch, "value"));
      append(seen.lengths, download_examples<std::int64_t>(devices[r], *batch, "x_length"));
      append(seen.x, download_examples<std::int32_t>(devices[r], *batch, "x"));
      seen.shape = batch->tensor("x").shape.without_front();
      seen.bucket = batch->position().bucket;
    }
    all.push_back(std::move(seen));
  }
}

std::size_t expected_bucket(std::int64_t length) { return length <= 3 ? 0 : length <= 8 ? 1 : 2; }

// What tf.data's bucket_by_sequence_length() makes of records in this order.
std::vector<std::vector<std::int64_t>> arranged(const std::vector<std::int64_t>& records, bool drop) {
  const std::vector<std::size_t> sizes{5, 3, 2};
  std::vector<std::vector<std::int64_t>> batches, waiting(3);
  for (const std::int64_t record : records) {
    const std::size_t bucket = expected_bucket(list_length(static_cast<std::uint64_t>(record)));
    waiting[bucket].push_back(record);
    if (waiting[bucket].size() == sizes[bucket]) batches.push_back(std::exchange(waiting[bucket], {}));
  }
  for (const auto& rest : waiting) {
    if (!rest.empty() && !drop) batches.push_back(rest);
  }
  return batches;
}

std::vector<std::vector<std::int64_t>> values_in(const std::vector<Seen>& batches) {
  std::vector<std::vector<std::int64_t>> all;
  for (const Seen& batch : batches) all.push_back(batch.values);
  return all;
}

// The order of the records is that of the same plan with batches of one.
void expect_arranged(const Dataset& before, bool drop, std::uint64_t epochs = 2) {
  std::vector<std::vector<std::int64_t>> expected;
  for (const auto& epoch : values_of(before.padded_batch({.global_batch = 1}), epochs)) {
    for (auto& batch : arranged(epoch, drop)) expected.push_back(std::move(batch));
  }
  const Dataset data = before.bucket_by_length(in_buckets(drop));
  EXPECT_EQ(data.steps_per_epoch() * epochs, expected.size());
  for (const int replicas : {1, 3}) {
    const auto seen = bucketed_batches_of(data, {.seed = 4, .epochs = epochs, .threads = 2}, replicas);
    EXPECT_EQ(values_in(seen), expected);
  }
}

TEST(BucketByLength, BatchesComeWhereTheirLastExampleArrives) {
  for (const bool drop : {false, true}) {
    expect_arranged(listed_rows(50), drop);
    expect_arranged(listed_rows(50).shuffle(), drop);
    expect_arranged(listed_rows(50).skip(3).shard(2, 1).shuffle().repeat(2), drop);
    expect_arranged(listed_rows(50).repeat(2).shuffle(), drop);
    expect_arranged(concatenate({listed_rows(20), listed_rows(13)}).take(31).shuffle_window({.size = 7}), drop);
  }
}

TEST(BucketByLength, PadsToTheBucket) {
  for (const int replicas : {1, 2}) {
    for (const Seen& batch : bucketed_batches_of(listed_rows(50).shuffle().bucket_by_length(in_buckets()),
                                                 {.seed = 4, .epochs = 2, .threads = 2}, replicas)) {
      const std::int64_t padded = std::vector<std::int64_t>{3, 8, 12}[batch.bucket];
      EXPECT_EQ(batch.shape, (Shape{padded, 2}));
      std::vector<std::int32_t> expected;
      for (const std::int64_t value : batch.values) {
        const std::int64_t length = list_length(static_cast<std::uint64_t>(value));
        EXPECT_EQ(expected_bucket(length), batch.bucket);
        for (std::int64_t i = 0; i < 2 * padded; ++i) {
          expected.push_back(i < 2 * length ? static_cast<std::int32_t>(value) + 1 : 0);
        }
      }
      EXPECT_EQ(batch.x, expected);
      for (std::size_t i = 0; i < batch.values.size(); ++i) {
        EXPECT_EQ(batch.lengths[i], list_length(static_cast<std::uint64_t>(batch.values[i])));
      }
    }
  }
}

// Rows without an example are zero, whatever the slot held before.
TEST(BucketByLength, RowsWithoutAnExampleAreZero) {
  for (const bool owned : {false, true}) {
    DeviceGroup devices = cpu_replicas(2);
    Loader loader(listed_rows(50).shuffle().bucket_by_length(in_buckets()), devices,
                  {.seed = 4, .epochs = 3, .threads = 1, .prefetch = 0, .owned_batches = owned});
    for (;;) {
      for (int r = 0; r < 2; ++r) {
        const auto batch = loader.next(r);
        if (!batch) return;
        const TensorView& x = batch->tensor("x");
        const auto* elements = x.as<std::int32_t>();
        const std::int64_t row = x.shape.without_front().elements();
        for (std::int64_t i = batch->examples() * row; i < x.shape.elements(); ++i) ASSERT_EQ(elements[i], 0);
      }
    }
  }
}

TEST(BucketByLength, IsOneStream) {
  expect_one_stream(listed_rows(50).shuffle().repeat(2).bucket_by_length(in_buckets()));
  expect_one_stream(listed_rows(50).shuffle().bucket_by_length(in_buckets()).shuffle().skip(1));
  expect_one_stream(
      listed_rows(50).cache(memory()).shuffle().enumerate().bucket_by_length(in_buckets(true)).repeat(2));
  expect_one_stream(listed_rows(30).shuffle().bucket_by_length(in_buckets()).repeat(2).shuffle());
}

TEST(BucketByLength, OperationsKeepTheLength) {
  const auto batches = bucketed_batches_of(
      listed_rows(20)
          .map(user_map({.name = "negate",
                         .field = "value",
                         .output = {.dtype = DType::kI64, .shape = {}},
                         .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out,
                                        Philox&) { std::ranges::copy(in, out.begin()); }}))
          .bucket_by_length(in_buckets()));
  EXPECT_EQ(values_in(batches),
            arranged({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, false));
}

TEST(BucketByLength, StagesOnItsBatchesAndSizes) {
  const Dataset data = listed_rows(50).bucket_by_length(in_buckets());
  const auto all = values_in(bucketed_batches_of(data));
  const auto chosen = values_in(bucketed_batches_of(data.skip(2).take(3)));
  EXPECT_EQ(chosen, std::vector(all.begin() + 2, all.begin() + 5));
  std::uint64_t examples = 0;
  for (const auto& batch : chosen) examples += batch.size();
  EXPECT_EQ(data.skip(2).take(3).size(), examples);
  EXPECT_EQ(data.size(), 50U);
  EXPECT_EQ(data.global_batch(), 5);
  EXPECT_TRUE(data.has_buckets());
  EXPECT_FALSE(listed_rows(5).padded_batch({}).has_buckets());
  EXPECT_TRUE(data.fields()[1].shape.is_dynamic());
}

TEST(BucketByLength, EmptyBucketsAndDataHaveNoBatches) {
  const BucketOptions options{.field = "x", .boundaries = {1, 40, 100}, .batch_sizes = {4}, .max_length = 200};
  EXPECT_EQ(bucketed_batches_of(listed_rows(9).bucket_by_length(options)).size(), 3U);
  EXPECT_EQ(bucketed_batches_of(listed_rows(9).take(0).bucket_by_length(options)).size(), 0U);
}

TEST(BucketByLength, PadsOtherFieldsAlongAndWithBytes) {
  BucketOptions options = in_buckets();
  options.pad = {{.field = "x", .value = 0xFF}};
  for (const Seen& batch : bucketed_batches_of(listed_rows(20).bucket_by_length(options))) {
    for (std::size_t i = 0; i < batch.values.size(); ++i) {
      const auto row = static_cast<std::size_t>(batch.shape.elements());
      const auto used = static_cast<std::size_t>(2 * batch.lengths[i]);
      for (std::size_t e = used; e < row; ++e) EXPECT_EQ(batch.x[i * row + e], -1);
    }
  }
}

TEST(BucketByLength, IsPartOfThePlan) {
  const PlanParts parts{.sources = {{"tokens", list_source(50)}}};
  const Dataset from = Dataset::from(parts.sources.at("tokens"));
  BucketOptions options = in_buckets(true);
  options.max_length = 20;
  options.pad = {{.field = "x", .length = 0, .value = 7}};
  expect_same_stream(from.shuffle().bucket_by_length(options), parts);
  expect_same_stream(from.take(30).shuffle().bucket_by_length(in_buckets()).shuffle().prefetch(3), parts);
  EXPECT_THAT(from.shuffle().bucket_by_length(in_buckets()).explain(),
              AllOf(HasSubstr("bucket_by_length(field=x, boundaries=[3, 8], batch_sizes=[5, 3, 2], max_length=0"),
                    HasSubstr("4 bytes each"), HasSubstr("length of 'x'  [on indices]")));
  EXPECT_NE(from.bucket_by_length(in_buckets()).fingerprint(), from.bucket_by_length(options).fingerprint());
}

TEST(BucketByLength, LongerRecordsAreBad) {
  BucketOptions options = in_buckets();
  options.max_length = 10;
  const Dataset data = listed_rows(30).bucket_by_length(options);
  EXPECT_THROW(bucketed_batches_of(data), DataError);
  std::vector<std::int64_t> left;
  for (const Seen& batch : bucketed_batches_of(
           data, {.seed = 4, .threads = 2, .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}})) {
    left.insert(left.end(), batch.values.begin(), batch.values.end());
  }
  EXPECT_EQ(left.size(), static_cast<std::size_t>(std::ranges::count_if(
                             std::views::iota(std::uint64_t{0}, std::uint64_t{30}),
                             [](std::uint64_t record) { return list_length(record) <= 10; })));
  // A substitute is of the same bucket.
  for (const Seen& batch : bucketed_batches_of(
           data, {.seed = 4, .threads = 2, .errors = {.on_error = OnError::kSubstitute, .max_bad_share = 1}})) {
    for (const std::int64_t length : batch.lengths) EXPECT_EQ(expected_bucket(length), batch.bucket);
  }
}

TEST(BucketByLength, RecordsThatCannotBeReadStayBad) {
  const Dataset data = Dataset::from(list_source(30, /*bad=*/11)).bucket_by_length(in_buckets());
  EXPECT_THROW(bucketed_batches_of(data), DataError);
  const auto batches = bucketed_batches_of(
      data, {.seed = 4, .threads = 2, .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
  std::size_t examples = 0;
  for (const Seen& batch : batches) examples += batch.values.size();
  EXPECT_EQ(examples, 29U);
}

TEST(BucketByLength, RefusesWhatMakesNoSense) {
  const auto with = [](auto change) {
    BucketOptions options = in_buckets();
    change(options);
    return message_of([&] { listed_rows(9).bucket_by_length(options).explain(); });
  };
  EXPECT_THAT(with([](BucketOptions& o) { o.boundaries = {}; }), HasSubstr("no boundaries"));
  EXPECT_THAT(with([](BucketOptions& o) { o.boundaries = {3, 3}; }), HasSubstr("do not ascend"));
  EXPECT_THAT(with([](BucketOptions& o) { o.boundaries = {0, 3}; }), HasSubstr("do not ascend"));
  EXPECT_THAT(with([](BucketOptions& o) { o.batch_sizes = {1, 2}; }), HasSubstr("2 batch sizes for 3 buckets"));
  EXPECT_THAT(with([](BucketOptions& o) { o.batch_sizes = {0}; }), HasSubstr("at least one example"));
  EXPECT_THAT(with([](BucketOptions& o) { o.max_length = 8; }), HasSubstr("not above the last boundary"));
  EXPECT_THAT(with([](BucketOptions& o) { o.field = "y"; }), HasSubstr("'y'"));
  EXPECT_THAT(with([](BucketOptions& o) { o.field = "value"; }), HasSubstr("cannot be padded"));
  EXPECT_THAT(with([](BucketOptions& o) { o.pad = {{.field = "x", .length = 9}}; }),
              HasSubstr("leave its length out"));
  const Dataset data = listed_rows(9).bucket_by_length(in_buckets());
  EXPECT_THAT(message_of([&] { data.unbatch().explain(); }), HasSubstr("padded_batch()"));
  EXPECT_THAT(message_of([&] { data.batch({}).explain(); }), HasSubstr("a batch of batches"));
  EXPECT_THAT(message_of([&] { data.evaluation_json(); }), HasSubstr("several shapes"));
  EXPECT_THAT(message_of([&] { listed_rows(9).shuffle().take(4).bucket_by_length(in_buckets()).size(); }),
              HasSubstr("changes from epoch to epoch"));
  const PlanParts parts{.sources = {{"lists", list_source(9)}}};
  const std::string json = Dataset::from(parts.sources.at("lists")).bucket_by_length(in_buckets()).to_json(parts);
  EXPECT_THAT(message_of([&] { Dataset::from_json(json, {.parts = parts, .global_batch = 9}); }),
              HasSubstr("batch_sizes"));
}

}  // namespace
}  // namespace headrace::test
