// Sizes that would wrap around, or that no machine holds: each is refused in words, or bounded by the data.
#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// As many records as asked for, of one shape, that cost nothing until they are read.
SourcePtr generated(std::uint64_t records, const Shape& shape, DType type = DType::kU8) {
  return generator({.name = "zeros",
                    .fields = {{.name = "value", .dtype = type, .shape = shape}},
                    .records = records,
                    .fingerprint = 1,
                    .function = [](std::uint64_t, RecordWriter&) {}});
}

std::string refusal(const Dataset& dataset, const LoaderOptions& options = {}, int replicas = 2) {
  DeviceGroup devices = cpu_replicas(replicas);
  return message_of([&] { Loader loader(dataset, devices, options); });
}

TEST(Sizes, ABatchIsNoLargerThanTheData) {
  const Dataset all = Dataset::from(numbers(101)).shuffle();
  const auto expected = cpu_digests_of(all.batch({.global_batch = 101}), {.seed = 3, .epochs = 2});
  for (const std::int64_t global : {std::int64_t{102}, std::int64_t{1} << 40, std::int64_t{1} << 61, kLargest}) {
    for (const int replicas : {1, 2, 8}) {
      DeviceGroup devices = cpu_replicas(replicas);
      Loader loader(all.batch({.global_batch = global}), devices, {.seed = 3, .epochs = 2});
      EXPECT_EQ(loader.steps_per_epoch(), 1U);
      EXPECT_EQ(loader.local_rows(), (101 + replicas - 1) / replicas);
      StreamDigest digest(devices);
      for (const BatchDigest& batch : expected) EXPECT_EQ(digest.next(loader)->sha256, batch.sha256) << global;
      EXPECT_FALSE(digest.next(loader));
    }
  }
}

TEST(Sizes, ABatchIsNoLargerThanAnEpochOfARepeatedOrPartialDataSet) {
  DeviceGroup devices = cpu_replicas(1);
  const Dataset data = Dataset::from(numbers(10));
  EXPECT_EQ(Loader(data.repeat(3).batch({.global_batch = kLargest}), devices).local_rows(), 30);
  EXPECT_EQ(Loader(data.take(4).batch({.global_batch = kLargest}), devices).local_rows(), 4);
  EXPECT_FALSE(Loader(Dataset::from(numbers(0)).batch({.global_batch = kLargest}), devices).next());
}

TEST(Sizes, ABatchThatNoMachineHoldsIsRefusedWithItsBytes) {
  const std::uint64_t records = machine_memory_bytes() / 4096;
  const Dataset data = Dataset::from(generated(records, {4096}));
  const auto global = static_cast<std::int64_t>(records);
  EXPECT_THAT(refusal(data.batch({.global_batch = global})), HasSubstr("the machine's memory = "));
  EXPECT_THAT(refusal(data.batch({.global_batch = global})), HasSubstr("does not hold 2 batches"));
  EXPECT_THAT(refusal(data.batch({.global_batch = global})), HasSubstr("make the global batch smaller"));
  EXPECT_THAT(refusal(data.repeat(std::int64_t{1} << 30).batch({.global_batch = kLargest})),
              HasSubstr("examples of 4096 bytes each is more than any machine holds"));
}

TEST(Sizes, CountsThatWrapAreRefused) {
  const Dataset data = Dataset::from(numbers(10));
  const Dataset batches = data.batch({.global_batch = 4});
  EXPECT_THAT(refusal(batches, {.epochs = ~std::uint64_t{0}}), HasSubstr("more than can be counted"));
  EXPECT_THAT(refusal(batches, {.prefetch = 1025}), HasSubstr("prefetch = 1025: 0 to 1024 are possible"));
  EXPECT_THAT(refusal(batches, {.prefetch = 1024}), HasSubstr(""));
  EXPECT_THAT(refusal(batches, {.threads = 100000}), HasSubstr("threads = 100000: 0 to 1024 are possible"));
  EXPECT_THAT(refusal(batches, {.threads = -1}), HasSubstr("threads = -1: 0 to 1024 are possible"));
  EXPECT_THAT(refusal(batches, {.reader_threads = 5000}), HasSubstr("reader_threads = 5000"));
  EXPECT_THAT(refusal(batches, {.reader_limit = 0}), HasSubstr("reader_limit = 0: 1 to 1024"));
  EXPECT_THAT(refusal(data.repeat(kLargest).batch({.global_batch = 4})), HasSubstr("repeat(9223372036854775807)"));
  const Dataset half = data.repeat(kLargest / 10);
  EXPECT_THAT(refusal(concatenate({half, half}).batch({.global_batch = 4})),
              HasSubstr("more records than can be counted"));
}

// Whatever stands around it, it is either taken or refused as the user's mistake.
TEST(Sizes, AHugeRepeatIsNoBug) {
  const Dataset data = Dataset::from(numbers(10));
  for (const std::int64_t times : {kLargest, kLargest / 10, kLargest / 20, std::int64_t{1} << 40}) {
    const Dataset huge = data.repeat(times);
    const RecordFilter all{.name = "all", .keeps = [](const ExampleView&) { return true; }};
    for (const Dataset& stages : {huge, huge.shuffle(), huge.shuffle().skip(3), huge.shuffle_window({.size = 100}),
                                  huge.shard(3, 1), huge.without_shard(3, 1), huge.take(20), huge.cache(memory()),
                                  huge.repeat(times), data.shuffle().repeat(times)}) {
      DeviceGroup devices = cpu_replicas(2);
      try {
        Loader loader(stages.batch({.global_batch = 4}), devices, {.threads = 1});
        EXPECT_TRUE(loader.next(0));
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr("repeat(")) << error.what();
      }
    }
    for (const auto& make :
         std::vector<std::function<Dataset()>>{[&] { return huge.filter(all); },
                                               [&] {
                                                 return zip({huge, huge}, {.suffixes = {"_a", "_b"}});
                                               },
                                               [&] {
                                                 return interleave({huge, data});
                                               },
                                               [&] {
                                                 return mix({huge, data}, {.weights = {1, 3}});
                                               },
                                               [&] {
                                                 return mix({data, huge});
                                               }}) {
      try {
        EXPECT_GT(make().batch({.global_batch = 4}).steps_per_epoch(), 0U);
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), Not(HasSubstr("bug")));
      }
    }
  }
}

TEST(Sizes, ShapesThatNoMemoryHoldsAreRefused) {
  constexpr std::int64_t kWide = std::int64_t{1} << 32;
  EXPECT_THROW(generated(4, {kWide, kWide}), ConfigError);
  EXPECT_THROW(Shape({kWide, 1 << 20}).with_front(1 << 10), ConfigError);
  EXPECT_THROW((Shape{0, kWide, kWide}), ConfigError);
  EXPECT_EQ(Shape({1 << 20, 1 << 20}).elements(), std::int64_t{1} << 40);
  EXPECT_EQ((Shape{Shape::kDynamic, 1 << 20, 3}).rank(), 3);
  const Dataset data = Dataset::from(generated(4, {std::int64_t{1} << 57}, DType::kF32));
  EXPECT_THAT(refusal(data.batch({.global_batch = 2})), HasSubstr("more than any machine holds"));
}

TEST(Sizes, ACacheOfMoreRecordsThanMemoryIsRefused) {
  const std::uint64_t records = (std::uint64_t{1} << 48) - 1;
  const Dataset data = Dataset::from(generated(records, {8}));
  EXPECT_THAT(refusal(data.cache(memory()).batch({.global_batch = 4})),
              HasSubstr("a cache of 281474976710655 records"));
}

}  // namespace
}  // namespace headrace::test
