// A cache in the plan changes how often the source is read and nothing else.
#include "headrace/cache/cache_report.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

Dataset finish(const Dataset& decoded) {
  return decoded.shuffle()
      .map(random_resized_crop({.size = 16}) | flip() | normalize({0.5F}, {0.25F}))
      .batch({.global_batch = 7});
}

TEST(CacheStage, LeavesTheStreamAsItIs) {
  const auto source = fake_jpegs(25);
  const Dataset base = Dataset::from(source).decode();
  const auto expected = cpu_digests_of(finish(base), {.seed = 2, .epochs = 2, .threads = 1});
  for (int replicas : {1, 2, 4}) {
    for (int threads : {1, 4}) {
      const auto cache = memory();
      const LoaderOptions options{.seed = 2, .epochs = 2, .threads = threads};
      const std::uint64_t before = source->reads();
      EXPECT_EQ(digests_of(finish(base.cache(cache)), replicas, options), expected) << "cold";
      EXPECT_GE(source->reads(), before + 25);
      EXPECT_EQ(cache->counters().records, 25U);
      const std::uint64_t warm = source->reads();
      EXPECT_EQ(digests_of(finish(base.cache(cache)), replicas, options), expected) << "warm";
      EXPECT_EQ(source->reads(), warm) << "a warm cache needs no source";
    }
  }
}

TEST(CacheStage, OnDiskLeavesTheStreamAsItIs) {
  const auto source = fake_jpegs(25);
  const Dataset base = Dataset::from(source).decode();
  const auto expected = cpu_digests_of(finish(base), {.seed = 2, .epochs = 2, .threads = 1});
  const TempFolder folder;
  for (int replicas : {1, 3}) {
    for (int threads : {1, 4}) {
      const auto place = folder / ("cache" + std::to_string(10 * replicas + threads));
      const LoaderOptions options{.seed = 2, .epochs = 2, .threads = threads};
      EXPECT_EQ(digests_of(finish(base.cache(disk(place, {.budget_bytes = 20'000}))), replicas, options), expected)
          << "a part fits";
      EXPECT_EQ(digests_of(finish(base.cache(disk(place))), replicas, options), expected) << "partly there";
      const std::uint64_t warm = source->reads();
      EXPECT_EQ(digests_of(finish(base.cache(disk(place))), replicas, options), expected) << "warm";
      EXPECT_EQ(source->reads(), warm) << "a warm cache needs no source";
    }
  }
}

TEST(CacheStage, OnDiskSurvivesDamage) {
  const auto source = fake_jpegs(25);
  const Dataset base = Dataset::from(source).decode();
  const auto expected = cpu_digests_of(finish(base), {.seed = 2, .epochs = 2, .threads = 1});
  const TempFolder folder;
  const LoaderOptions options{.seed = 2, .epochs = 2, .threads = 2};
  EXPECT_EQ(digests_of(finish(base.cache(disk(folder.path()))), 1, options), expected);
  Philox random({.seed = 3});
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!file.is_regular_file()) continue;
    std::vector<std::byte> bytes = read_whole_file(file.path());
    for (int flip = 0; flip < 40; ++flip) {
      bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] ^=
          static_cast<std::byte>(1U << random.below(8));
    }
    bytes.resize(bytes.size() - bytes.size() / 5);
    write_file_atomically(file.path(), bytes);
  }
  EXPECT_EQ(digests_of(finish(base.cache(disk(folder.path()))), 2, options), expected);
}

TEST(CacheStage, OnDiskIsKeyedByWhatIsCached) {
  const auto source = fake_jpegs(4);
  const Dataset base = Dataset::from(source).decode();
  const TempFolder folder;
  digests_of(base.map(center_crop(8)).cache(disk(folder.path())).batch({.global_batch = 2}), 1, {});
  digests_of(base.map(center_crop(10)).cache(disk(folder.path())).batch({.global_batch = 2}), 1, {});
  EXPECT_EQ(inspect_cache(folder.path(), Thoroughness::kEveryByte).size(), 2U);
}

TEST(CacheStage, MayStandAnywhereBeforeRandomOperations) {
  const auto source = fake_jpegs(9);
  const Operations crop = center_crop(20);
  const Operations rest = normalize({0.5F}, {0.25F}) | pad_crop(20, 4) | flip();
  const auto stream = [&](const Dataset& dataset) {
    return digests_of(dataset.batch({.global_batch = 4}), 2, {.seed = 2, .epochs = 3, .threads = 2});
  };
  const Dataset base = Dataset::from(source);
  const auto expected = stream(base.decode().map(crop | rest));
  EXPECT_EQ(stream(base.cache(memory()).decode().map(crop | rest)), expected);
  EXPECT_EQ(stream(base.decode().map(crop).cache(memory()).map(rest)), expected);
  EXPECT_EQ(
      stream(base.decode().map(crop | normalize({0.5F}, {0.25F})).cache(memory()).map(pad_crop(20, 4) | flip())),
      expected);
}

TEST(CacheStage, WorksWhenOnlyAPartFits) {
  const auto source = fake_jpegs(25);
  const Dataset base = Dataset::from(source).decode();
  const auto expected = cpu_digests_of(finish(base), {.seed = 2, .epochs = 3});
  const auto cache = memory(20'000);
  EXPECT_EQ(digests_of(finish(base.cache(cache)), 2, {.seed = 2, .epochs = 3, .threads = 2}), expected);
  EXPECT_GT(cache->counters().records, 0U);
  EXPECT_LT(cache->counters().records, 25U);
  EXPECT_GT(cache->counters().refused, 0U);
}

TEST(CacheStage, RefusesAnotherStreamsCache) {
  const auto source = fake_jpegs(4);
  const auto cache = memory();
  DeviceGroup devices = test_devices(1);
  const Dataset base = Dataset::from(source).decode();
  Loader first(finish(base.cache(cache)), devices);
  EXPECT_THROW(Loader(base.map(center_crop(8)).cache(cache).batch({.global_batch = 2}), devices), ConfigError);
}

TEST(CacheStage, RefusesAUserMapThatDrawsRandomNumbers) {
  UserMap map{.name = "dice", .output = {.dtype = DType::kU8, .shape = {1}}};
  map.function = [](auto&&, auto&&, auto&&, Philox& random) { random.next_u32(); };
  DeviceGroup devices = test_devices(1);
  Loader loader(
      Dataset::from(fake_jpegs(4)).decode().map(user_map(map)).cache(memory()).batch({.global_batch = 2}),
      devices);
  EXPECT_THROW(loader.next(), DataError);
}

}  // namespace
}  // namespace headrace::test
