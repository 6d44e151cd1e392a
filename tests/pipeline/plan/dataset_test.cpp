// Plans: their fields, sizes, splits and refusals.
#include "headrace/pipeline/dataset.h"
#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/held_out.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::string refusal_of_plan(const Dataset& dataset) {
  return message_of([&] { dataset.explain(); });
}

SourcePtr encoded() { return std::make_shared<FakeSource>(std::vector<std::vector<std::byte>>(3)); }

TEST(Dataset, ExplainsThePlanAfterPushDown) {
  const Dataset dataset = Dataset::from(encoded())
                              .decode()
                              .cache(memory())
                              .shuffle({.seed = 7})
                              .map(pad_crop(32, 4) | flip())
                              .take(2)
                              .batch({.global_batch = 2})
                              .prefetch(3);
  EXPECT_EQ(dataset.explain(),
            "source(fake images, 3 records)\n"
            "shuffle(seed=7, reshuffle_each_epoch=true)  [on indices]\n"
            "take(count=2)  [on indices]\n"
            "decode()\n"
            "cache(memory)\n"
            "pad_crop(size=32, pad=4, padding=zero)\n"
            "flip(probability=0.5, alternating=false)\n"
            "  -> image uint8 (32, 32, 3), channels last\n"
            "batch(global_batch=2, drop_remainder=false)\n"
            "prefetch(batches=3)\n");
}

TEST(Dataset, CountsOnTheSizeThatImagesAreSaidToHave) {
  const Dataset dataset = Dataset::from(encoded()).decode({.height = 24, .width = 30}).batch({.global_batch = 2});
  EXPECT_EQ(dataset.fields()[0].shape, (Shape{24, 30, 3}));
  EXPECT_THAT(dataset.explain(), HasSubstr("decode(24 x 30)\n"));
  EXPECT_NE(dataset.fingerprint(),
            Dataset::from(encoded()).decode({.height = 30, .width = 24}).batch({.global_batch = 2}).fingerprint());
}

TEST(Dataset, CountsRecordsAndSteps) {
  const Dataset all = Dataset::from(numbers(100)).skip(10).shard(3, 1).repeat(2);
  EXPECT_EQ(all.size(), 60U);
  EXPECT_EQ(all.batch({.global_batch = 7}).steps_per_epoch(), 9U);
  EXPECT_EQ(all.batch({.global_batch = 7, .drop_remainder = true}).steps_per_epoch(), 8U);
  EXPECT_THROW(all.steps_per_epoch(), ConfigError);
}

TEST(Dataset, IsImmutable) {
  const Dataset base = Dataset::from(numbers(10));
  const Dataset taken = base.take(3);
  EXPECT_EQ(base.size(), 10U);
  EXPECT_EQ(taken.size(), 3U);
}

TEST(Dataset, FingerprintsWhatTheStreamDependsOn) {
  const Dataset base = Dataset::from(noise_images(10, 8, 8));
  const auto of = [](const Dataset& dataset) { return dataset.batch({.global_batch = 4}).fingerprint(); };
  const std::uint64_t plain = of(base);
  EXPECT_EQ(of(base.cache(memory())), plain);
  EXPECT_EQ(base.batch({.global_batch = 4}).prefetch(9).fingerprint(), plain);
  EXPECT_NE(base.batch({.global_batch = 5}).fingerprint(), plain);
  EXPECT_NE(of(base.shuffle()), plain);
  EXPECT_NE(of(base.map(flip())), plain);
  EXPECT_NE(of(base.map(flip(0.25F))), of(base.map(flip())));
  EXPECT_NE(of(Dataset::from(noise_images(11, 8, 8))), plain);
  UserMap map{.name = "f", .output = {.dtype = DType::kU8, .shape = {1}}, .function = [](auto&&...) {}};
  const std::uint64_t first = of(base.map(user_map(map)));
  map.version = 2;
  EXPECT_NE(of(base.map(user_map(map))), first);
}

TEST(Dataset, RefusesPlansThatMakeNoSense) {
  const Dataset images = Dataset::from(noise_images(10, 8, 8));
  EXPECT_THAT(refusal_of_plan(images.decode()), HasSubstr("no field is an encoded image"));
  EXPECT_THAT(refusal_of_plan(images.map(flip()).cache(memory())), HasSubstr("flip(probability=0.5"));
  const auto cache = memory();
  EXPECT_THAT(refusal_of_plan(images.cache(cache).cache(cache)), HasSubstr("one cache stands at two places"));
  EXPECT_THAT(refusal_of_plan(images.batch({.global_batch = 2}).batch({.global_batch = 2})),
              HasSubstr("a batch of batches"));
  EXPECT_THAT(refusal_of_plan(images.batch({.global_batch = 2}).filter(with_labels({1}))),
              HasSubstr("single records"));
  EXPECT_THAT(refusal_of_plan(images.prefetch(2)), HasSubstr("prefetch"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(numbers(3)).map(flip())), HasSubstr("image"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(encoded()).batch({.global_batch = 2})), HasSubstr("still encoded"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(encoded()).decode().batch({.global_batch = 2})),
              HasSubstr("differs from record"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(encoded()).map(flip())), HasSubstr("call decode()"));
  EXPECT_EQ(refusal_of_plan(images.map(flip())), "");
  EXPECT_THROW(Dataset::from(nullptr), ConfigError);
  EXPECT_THROW(Dataset::from(encoded()).decode({.height = 3}), ConfigError);
  EXPECT_THROW(Dataset::from(encoded()).decode({.height = 3, .width = -1}), ConfigError);
  EXPECT_THROW(images.repeat(0), ConfigError);
  EXPECT_THROW(images.shard(2, 2), ConfigError);
  EXPECT_THROW(images.shard(0, 0), ConfigError);
  EXPECT_THROW(images.batch({.global_batch = 0}), ConfigError);
  EXPECT_THROW(images.batch({.global_batch = 1}).prefetch(-1), ConfigError);
  EXPECT_THROW(images.cache(nullptr), ConfigError);
}

// Sizes that would wrap around, or that no machine holds: each is refused in words, or bounded by the data.

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

Dataset zero_labels(std::uint64_t count) {
  Field field{.name = "label", .dtype = DType::kI64, .shape = Shape{}};
  return Dataset::from(
      in_memory("numbers", count, {{.field = field, .bytes = std::vector<std::byte>(count * 8)}}));
}

TEST(HeldOut, LeavesTheLastRecordsBeforeAnyShuffle) {
  const HeldOut parts =
      hold_out_last(zero_labels(103).shuffle({.seed = 7}).repeat(2).batch({.global_batch = 10}), 0.2);
  EXPECT_EQ(parts.train.explain().find("take(count=82)") < parts.train.explain().find("shuffle"), true);
  EXPECT_EQ(parts.train.steps_per_epoch(), 17U);  // twice 82 records
  EXPECT_THAT(parts.validation.explain(), HasSubstr("skip(count=82)"));
  EXPECT_THAT(parts.validation.explain(), Not(HasSubstr("shuffle")));
  EXPECT_EQ(parts.validation.steps_per_epoch(), 3U);  // 21 records
}

TEST(HeldOut, ASelectBelongsToBothPartsUnlessItFollowsAShuffle) {
  const HeldOut before = hold_out_last(zero_labels(10).select({9, 8, 7, 6}).batch({.global_batch = 1}), 0.5);
  EXPECT_EQ(before.train.size() + before.validation.size(), 4U);
  const HeldOut after = hold_out_last(zero_labels(10).shuffle().select({4, 4, 4}).batch({.global_batch = 1}), 0.5);
  EXPECT_EQ(after.train.size(), 3U);
  EXPECT_EQ(after.validation.size(), 5U);
}

TEST(HeldOut, RefusesSharesThatLeaveNothing) {
  for (const double share : {0.0, 1.0, -0.5, 0.95}) {
    EXPECT_THROW(hold_out_last(zero_labels(10).batch({.global_batch = 2}), share), ConfigError) << share;
  }
  EXPECT_THROW(hold_out_last(mix({zero_labels(10), zero_labels(10)}).batch({.global_batch = 2}), 0.5),
               ConfigError);
}

TEST(ShuffleWindow, ShufflesWithinEachWindow) {
  const auto epochs =
      values_of(Dataset::from(numbers(103)).shuffle_window({.size = 10, .seed = 2}).batch({.global_batch = 7}), 2);
  for (const auto& epoch : epochs) {
    ASSERT_EQ(epoch.size(), 103U);
    for (std::size_t first = 0; first < epoch.size(); first += 10) {
      std::vector<std::int64_t> window(
          epoch.begin() + static_cast<std::ptrdiff_t>(first),
          epoch.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(first + 10, 103)));
      std::ranges::sort(window);
      for (std::size_t i = 0; i < window.size(); ++i) EXPECT_EQ(window[i], static_cast<std::int64_t>(first + i));
    }
    EXPECT_FALSE(std::ranges::is_sorted(epoch));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  const auto same = values_of(Dataset::from(numbers(103))
                                  .shuffle_window({.size = 10, .reshuffle_each_epoch = false})
                                  .batch({.global_batch = 7}),
                              2);
  EXPECT_EQ(same[0], same[1]);
}

TEST(ShuffleWindow, IsOneStream) {
  expect_one_stream(Dataset::from(numbers(58)).shuffle_window({.size = 9}).batch({.global_batch = 5}));
  expect_one_stream(Dataset::from(numbers(29))
                        .shuffle()
                        .repeat(2)
                        .shuffle_window({.size = 12})
                        .skip(3)
                        .batch({.global_batch = 5}));
  expect_contents(Dataset::from(numbers(58)).shuffle_window({.size = 100}).batch({.global_batch = 5}),
                  EpochContents::all(58), 3);
}

// Each epoch has all records; those of a group come from few blocks of neighbours.
TEST(ShuffleBlocks, ShufflesBlocksAndWithinGroups) {
  constexpr std::uint64_t kBlock = 10, kGroup = 4;
  for (const std::uint64_t count : {1, 7, 10, 41, 399, 400, 401}) {
    const Dataset plan =
        Dataset::from(numbers(count)).shuffle_blocks({.block = kBlock, .group = kGroup, .seed = 2});
    const auto epochs = values_of(plan.batch({.global_batch = 7}), 3);
    for (const auto& epoch : epochs) {
      std::vector<std::int64_t> sorted = epoch;
      std::ranges::sort(sorted);
      ASSERT_EQ(sorted.size(), count);
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(sorted[i], static_cast<std::int64_t>(i));
      for (std::uint64_t first = 0; first < count; first += kBlock * kGroup) {
        std::set<std::int64_t> runs, seen;
        for (std::uint64_t i = first; i < std::min(first + kBlock * kGroup, count); ++i) seen.insert(epoch[i]);
        for (const std::int64_t value : seen) {
          if (!seen.contains(value - 1)) runs.insert(value);
        }
        EXPECT_LE(runs.size(), kGroup + 2) << "blocks, the last one, and the one that goes around the end";
      }
    }
    if (count > 7) {
      EXPECT_NE(epochs[0], epochs[1]);
    }
  }
  const auto same = values_of(Dataset::from(numbers(103))
                                  .shuffle_blocks({.block = 8, .group = 3, .reshuffle_each_epoch = false})
                                  .batch({.global_batch = 7}),
                              2);
  EXPECT_EQ(same[0], same[1]);
}

TEST(ShuffleBlocks, MixesClassesThatLieTogether) {
  constexpr std::uint64_t kMany = 40'000, kOfClass = 400;
  const auto epoch =
      values_of(
          Dataset::from(numbers(kMany)).shuffle_blocks({.block = 16, .group = 64}).batch({.global_batch = 256}))
          .front();
  std::set<std::int64_t> classes;
  for (std::size_t i = 5'000; i < 5'256; ++i) classes.insert(epoch[i] / static_cast<std::int64_t>(kOfClass));
  EXPECT_GT(classes.size(), 40U) << "of 100; a full shuffle has about 92";
}

TEST(ShuffleBlocks, IsOneStream) {
  expect_one_stream(
      Dataset::from(numbers(58)).shuffle_blocks({.block = 5, .group = 3}).batch({.global_batch = 5}));
  expect_contents(
      Dataset::from(numbers(58)).shuffle_blocks({.block = 7, .group = 2}).repeat(2).batch({.global_batch = 5}),
      EpochContents::all(58, 2), 3);
}

TEST(ShuffleBlocks, RefusesWhatIsNoBlock) {
  EXPECT_THROW(Dataset::from(numbers(5)).shuffle_blocks({.block = 0}), ConfigError);
  EXPECT_THROW(Dataset::from(numbers(5)).shuffle_blocks({.group = 0}), ConfigError);
}

TEST(ShuffleWindow, RefusesAnEmptyWindow) {
  EXPECT_THROW(Dataset::from(numbers(5)).shuffle_window({.size = 0}), ConfigError);
}

}  // namespace
}  // namespace headrace::test
