// Datasets that were decoded, mapped or cached before they were combined, and plans with several caches.
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

// value -> factor * value, plus a random number below `noise`.
Operations times(std::int64_t factor, std::uint32_t noise = 0) {
  return user_map({.name = "times " + std::to_string(factor) + (noise > 0 ? " and noise" : ""),
                   .field = "value",
                   .output = {.dtype = DType::kI64, .shape = {}},
                   .function = [factor, noise](std::span<const std::byte> in, const Shape&,
                                               std::span<std::byte> out, Philox& random) {
                     std::int64_t value = 0;
                     std::memcpy(&value, in.data(), sizeof value);
                     value = factor * value + (noise > 0 ? random.below(noise) : 0);
                     std::memcpy(out.data(), &value, sizeof value);
                   }});
}

std::vector<std::int64_t> values_in_order(const Dataset& dataset) {
  return values_of(dataset.batch({.global_batch = 3}))[0];
}

TEST(ProcessedParts, EachHasItsOwnOperations) {
  const Dataset a = Dataset::from(numbers(3)).map(times(10)),
                b = Dataset::from(numbers(4)).skip(1).map(times(100));
  EXPECT_THAT(values_in_order(concatenate({a, b})), ElementsAre(0, 10, 20, 100, 200, 300));
  EXPECT_THAT(values_in_order(interleave({a, b}).map(times(2))), ElementsAre(0, 200, 20, 400, 40, 600));
  const Dataset nested =
      concatenate({interleave({a, Dataset::from(numbers(2))}).map(times(2)), b.cache(memory())});
  EXPECT_THAT(values_in_order(nested), ElementsAre(0, 0, 20, 2, 40, 100, 200, 300));
  EXPECT_THAT(values_in_order(nested.cache(memory()).batch({.global_batch = 3}).skip(2).unbatch()),
              ElementsAre(200, 300));
}

TEST(ProcessedParts, AreFilteredAsCombined) {
  const RecordFilter small{.name = "below 150",
                           .keeps = [](const ExampleView& record) { return record.integer("value") < 150; }};
  const Dataset a = Dataset::from(numbers(3)).map(times(10)),
                b = Dataset::from(numbers(4)).skip(1).map(times(100));
  EXPECT_THAT(values_in_order(concatenate({a, b}).filter(small)), ElementsAre(0, 10, 20, 100));
  RecordFilter processed = small;
  processed.processed = true;
  EXPECT_THAT(values_in_order(concatenate({a, b}).map(times(10)).filter(processed)), ElementsAre(0, 100));
  EXPECT_THAT(values_in_order(concatenate({a.filter(processed), b.filter(processed)})),
              ElementsAre(0, 10, 20, 100));
}

TEST(ProcessedParts, OfZipEachSeeTheirFields) {
  const Dataset a = Dataset::from(numbers(5)).skip(1).map(times(10)).cache(memory()).map(times(2));
  const Dataset b = Dataset::from(numbers(9)).shard(2, 1).map(times(100));
  const Dataset zipped = zip({a, b}, {.suffixes = {"", "_2"}});
  DeviceGroup devices = test_devices(1);
  for (int run = 0; run < 2; ++run) {
    Loader loader(zipped.map(times(3)).batch({.global_batch = 4}), devices);
    const auto batch = loader.next();
    EXPECT_THAT(download<std::int64_t>(devices[0], *batch, "value"), ElementsAre(60, 120, 180, 240));
    EXPECT_THAT(download<std::int64_t>(devices[0], *batch, "value_2"), ElementsAre(100, 300, 500, 700));
  }
}

TEST(ProcessedParts, OfZipDrawDifferentNumbers) {
  const auto noise = [] { return Dataset::from(numbers(50)).map(times(0, 1 << 20)); };
  const Dataset zipped = zip({noise(), noise()}, {.suffixes = {"", "_2"}}).batch({.global_batch = 50});
  DeviceGroup devices = test_devices(1);
  Loader loader(zipped, devices);
  const auto batch = loader.next();
  EXPECT_NE(download<std::int64_t>(devices[0], *batch, "value"),
            download<std::int64_t>(devices[0], *batch, "value_2"));
}

Dataset cropped_jpegs(int count, int size) {
  return Dataset::from(fake_jpegs(count)).decode().map(random_resized_crop({.size = size}) | flip());
}

TEST(ProcessedParts, AreOneStream) {
  expect_one_stream(
      mix({cropped_jpegs(7, 12), cropped_jpegs(6, 12).shuffle().repeat(2)}).shuffle().batch({.global_batch = 4}));
  expect_one_stream(concatenate({cropped_jpegs(7, 12).take(5), cropped_jpegs(6, 12)})
                        .repeat(2)
                        .map(flip())
                        .batch({.global_batch = 4})
                        .shuffle());
  expect_one_stream(zip({cropped_jpegs(8, 12), Dataset::from(numbers(8)).map(times(3, 5))})
                        .shuffle()
                        .batch({.global_batch = 3}));
  EXPECT_THAT(concatenate({cropped_jpegs(7, 12), cropped_jpegs(2, 12)}).explain(),
              HasSubstr("records of dataset 1:\n  decode()\n"));
  EXPECT_NE(concatenate({cropped_jpegs(7, 12), cropped_jpegs(2, 12)}).fingerprint(),
            concatenate({cropped_jpegs(7, 12), cropped_jpegs(2, 12).map(flip(0.25F))}).fingerprint());
}

TEST(ProcessedParts, SayWhatIsRead) {
  const Dataset both =
      concatenate({cropped_jpegs(7, 12).map(cast(DType::kF32)), cropped_jpegs(2, 12).map(cast(DType::kF32))});
  EXPECT_EQ(concatenate({both, both}).source_fields()[0].encoding, Encoding::kImage);
  EXPECT_EQ(both.source()->info().fields, both.fields());
}

TEST(ProcessedParts, AsTheyWouldBeAfterCombining) {
  const auto digests = [](const Dataset& data) {
    return cpu_digests_of(data.shuffle().batch({.global_batch = 4}), {.seed = 3, .epochs = 2, .threads = 2});
  };
  const auto decoded = [](int count) { return Dataset::from(fake_jpegs(count)).decode(); };
  const auto encoded = [](int count) { return Dataset::from(fake_jpegs(count)); };
  const Operations chain = random_resized_crop({.size = 12}) | flip();
  EXPECT_EQ(digests(concatenate({decoded(7).map(chain), decoded(6).map(chain)})),
            digests(concatenate({encoded(7), encoded(6)}).decode().map(chain)));
}

TEST(SeveralCaches, LeaveTheStreamAsItIs) {
  const auto source = fake_jpegs(25);
  const Dataset base = Dataset::from(source).decode();
  const auto end = [](const Dataset& data) { return data.shuffle().map(flip()).batch({.global_batch = 7}); };
  const LoaderOptions options{.seed = 2, .epochs = 2, .threads = 2};
  const auto expected = cpu_digests_of(end(base.map(resize(20) | center_crop(16))), options);
  const TempFolder folder;
  const auto place = folder / "cache";
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{8000}}) {
    const auto outer = memory(budget);
    const Dataset cached = base.cache(disk(place)).map(resize(20) | center_crop(16)).cache(outer);
    EXPECT_EQ(digests_of(end(cached), 2, options), expected) << "cold";
    const std::uint64_t reads = source->reads();
    EXPECT_EQ(digests_of(end(cached), 3, options), expected) << "warm";
    EXPECT_EQ(
        digests_of(end(base.cache(disk(place)).map(resize(20) | center_crop(16)).cache(memory())), 1, options),
        expected)
        << "from the inner cache";
    EXPECT_EQ(source->reads(), reads) << "a warm cache needs no source";
  }
  EXPECT_THAT(base.cache(memory()).map(resize(20)).cache(memory()).explain(),
              HasSubstr("decode()\ncache(memory)\nresize(size=20)\ncache(memory)\n"));
}

}  // namespace
}  // namespace headrace::test
