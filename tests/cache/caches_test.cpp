// Caches in memory and on disk.
#include "headrace/cache/cache_report.h"
#include "headrace/cache/disk_cache.h"
#include "headrace/cache/memory_cache.h"
#include "headrace/tests/cache/disk/disk_cache_fixture.h"
#include "headrace/tests/conformance/sample_cache_suite.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

struct MemoryCacheMaker {
  std::unique_ptr<SampleCache> make(std::uint64_t budget_bytes) {
    return std::make_unique<MemoryCache>(budget_bytes);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, SampleCacheSuite, MemoryCacheMaker);

TEST(MemoryCacheTest, StoredBytesStayWhereTheyAre) {
  MemoryCache cache;
  cache.bind(1, 1000);
  Bytes scratch;
  cache.insert(0, content(0));
  const auto* first = cache.find(0, scratch).data();
  for (std::uint64_t i = 1; i < 1000; ++i) cache.insert(i, content(i));
  EXPECT_EQ(cache.find(0, scratch).data(), first);
  EXPECT_TRUE(scratch.empty());
}

struct DiskCacheMaker {
  TempFolder folder;
  std::unique_ptr<SampleCache> make(std::uint64_t budget_bytes) {
    return std::make_unique<DiskCache>(folder / "cache", DiskCacheOptions{.budget_bytes = budget_bytes});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Disk, SampleCacheSuite, DiskCacheMaker);

TEST_F(DiskCacheTest, IsWarmWhenItIsOpenedAgain) {
  fill(0, kStoredRecords);
  DiskCache cache(place_);
  cache.bind(kFingerprint, kStoredRecords);
  EXPECT_EQ(cache.counters().records, kStoredRecords);
  for (std::uint64_t i = 0; i < kStoredRecords; ++i) ASSERT_TRUE(holds(cache, i)) << i;
  EXPECT_EQ(cache.counters().misses, 0U);
  EXPECT_EQ(files(".segment").size(), 1U) << "a warm run writes nothing";
}

TEST_F(DiskCacheTest, GoesOnWhereAnotherRunEnded) {
  fill(0, 300);
  fill(300, kStoredRecords);
  EXPECT_EQ(serve_all().hits, 3 * kStoredRecords);
  EXPECT_EQ(files(".segment").size(), 2U);
}

TEST_F(DiskCacheTest, BeginsANewSegmentWhereOneIsFull) {
  fill(0, kStoredRecords, {.segment_bytes = 1});
  EXPECT_GE(files(".segment").size(), 2U);
  EXPECT_EQ(files(".segment").size(), files(".index").size());
  EXPECT_EQ(serve_all().misses, 0U);
}

TEST_F(DiskCacheTest, LooksAtItsOwnStreamOnly) {
  fill(0, kStoredRecords);
  DiskCache other(place_);
  other.bind(kFingerprint + 1, kStoredRecords);
  EXPECT_EQ(other.counters().records, 0U);
  DiskCache longer(place_);
  longer.bind(kFingerprint, kStoredRecords + 1);
  EXPECT_EQ(longer.counters().records, 0U) << "the source had another number of records";
}

TEST_F(DiskCacheTest, ServesWhatIsStillInItsBuffer) {
  DiskCache cache(place_);
  cache.bind(kFingerprint, kStoredRecords);
  cache.insert(3, content(3));
  EXPECT_TRUE(holds(cache, 3));
}

TEST_F(DiskCacheTest, CompressesOnlyWhatGetsSmaller) {
  Philox random({.seed = 4});
  const auto stored = [&](bool noise) {
    const std::filesystem::path place = folder_ / (noise ? "noise" : "flat");
    {
      DiskCache cache(place);
      cache.bind(1, 200);
      for (std::uint64_t i = 0; i < 200; ++i) {
        Bytes sample(3072, static_cast<std::byte>(i));
        if (noise) {
          for (std::byte& byte : sample) byte = static_cast<std::byte>(random.below(256));
        }
        cache.insert(i, sample);
        EXPECT_EQ(found(cache, i), sample);
      }
    }
    return inspect_cache(place, Thoroughness::kEveryByte).front().bytes;
  };
  EXPECT_GT(stored(true), 200U * 3072);
  EXPECT_LT(stored(false), 200U * 3072 / 3);
}

TEST_F(DiskCacheTest, LeavesForeignFilesAlone) {
  fill(0, 10);
  const std::filesystem::path stream = place_ / "0000000000001234";
  folder_.write("cache/notes.txt", "mine");
  folder_.write("cache/0000000000001234/other.segment",
                "not a segment of ours, but longer than a header of forty");
  EXPECT_EQ(serve_all().records, kStoredRecords);
  EXPECT_TRUE(std::filesystem::exists(place_ / "notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(stream / "other.segment"));
}

TEST_F(DiskCacheTest, RefusesAFileInPlaceOfAFolder) {
  const auto file = folder_.write("file", "x");
  EXPECT_THAT(error_of<ConfigError>([&] { DiskCache cache(file); }).what(), HasSubstr(file.string()));
}

}  // namespace
}  // namespace headrace::test
