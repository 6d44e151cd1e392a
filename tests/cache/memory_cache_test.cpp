#include "headrace/cache/memory_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace::test {
namespace {

using Bytes = std::vector<std::byte>;

// What record `index` holds: no two records alike, sizes from 1 to 5000.
Bytes content(std::uint64_t index) {
  Bytes bytes(1 + index * 37 % 5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(index * 7 + i);
  return bytes;
}

bool holds(MemoryCache& cache, std::uint64_t index) {
  const auto found = cache.find(index);
  return std::ranges::equal(found, content(index));
}

TEST(MemoryCacheTest, GivesBackWhatWasStored) {
  constexpr std::uint64_t kRecords = 5000;  // more than one slab
  MemoryCache cache;
  cache.bind(1, kRecords);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    EXPECT_TRUE(cache.find(i).empty());
    EXPECT_TRUE(cache.insert(i, content(i)));
    bytes += content(i).size();
  }
  const auto* first = cache.find(0).data();
  for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(holds(cache, i)) << i;
  EXPECT_EQ(cache.find(0).data(), first) << "stored bytes stay where they are";
  const CacheCounters counters = cache.counters();
  EXPECT_EQ(counters.records, kRecords);
  EXPECT_EQ(counters.bytes, bytes);
  EXPECT_EQ(counters.misses, kRecords);
  EXPECT_EQ(counters.hits, kRecords + 2);
  EXPECT_EQ(counters.refused, 0U);
}

TEST(MemoryCacheTest, KeepsLargeRecords) {
  MemoryCache cache;
  cache.bind(1, 3);
  const Bytes large(10'000'000, std::byte{3});
  EXPECT_TRUE(cache.insert(1, large));
  EXPECT_TRUE(cache.insert(2, content(2)));
  EXPECT_TRUE(std::ranges::equal(cache.find(1), large));
  EXPECT_TRUE(holds(cache, 2));
}

TEST(MemoryCacheTest, TheFirstStoredStays) {
  MemoryCache cache;
  cache.bind(1, 2);
  EXPECT_TRUE(cache.insert(0, content(5)));
  EXPECT_TRUE(cache.insert(0, content(6)));
  EXPECT_TRUE(std::ranges::equal(cache.find(0), content(5)));
  EXPECT_EQ(cache.counters().records, 1U);
}

TEST(MemoryCacheTest, KeepsToItsBudgetExactly) {
  MemoryCache cache(1000);
  cache.bind(1, 20);
  for (std::uint64_t i = 0; i < 9; ++i) EXPECT_TRUE(cache.insert(i, Bytes(100)));
  EXPECT_FALSE(cache.insert(9, Bytes(101)));
  EXPECT_TRUE(cache.find(9).empty());
  EXPECT_TRUE(cache.insert(10, Bytes(100))) << "what fits to the last byte is taken";
  EXPECT_FALSE(cache.insert(11, Bytes(1)));
  EXPECT_FALSE(cache.insert(12, Bytes(5000)));
  EXPECT_EQ(cache.counters().bytes, 1000U);
  EXPECT_EQ(cache.counters().records, 10U);
  EXPECT_EQ(cache.counters().refused, 3U);
  EXPECT_FALSE(cache.find(0).empty()) << "nothing is evicted";
}

TEST(MemoryCacheTest, BelongsToOneStream) {
  MemoryCache cache;
  EXPECT_TRUE(cache.find(0).empty()) << "nothing is there before it is bound";
  EXPECT_THROW(cache.insert(0, content(0)), Error);
  cache.bind(7, 10);
  cache.insert(0, content(0));
  cache.bind(7, 10);
  EXPECT_TRUE(holds(cache, 0)) << "the same stream finds it warm";
  EXPECT_THROW(cache.bind(8, 10), ConfigError);
  EXPECT_THROW(cache.bind(7, 11), ConfigError);
  EXPECT_TRUE(holds(cache, 0));
}

TEST(MemoryCacheTest, KnowsNoRecordBeyondItsEnd) {
  MemoryCache cache;
  cache.bind(7, 10);
  EXPECT_TRUE(cache.find(10).empty());
  EXPECT_TRUE(cache.find(~std::uint64_t{0}).empty());
  EXPECT_THROW(cache.insert(10, content(0)), Error);
  EXPECT_THROW(cache.insert(0, {}), Error);
}

// All threads fill and read the same records: whoever finds one finds it whole.
TEST(MemoryCacheTest, IsFilledAndReadByManyThreadsAtOnce) {
  constexpr std::uint64_t kRecords = 2000, kBudget = 3'000'000;
  constexpr int kThreads = 8, kRounds = 3;
  MemoryCache cache(kBudget);
  cache.bind(1, kRecords);
  std::atomic<int> wrong{0};
  const auto work = [&](std::uint64_t start) {
    for (std::uint64_t i = 0; i < kRounds * kRecords; ++i) {
      const std::uint64_t index = (start * 251 + i * 3) % kRecords;
      const auto found = cache.find(index);
      if (found.empty()) {
        cache.insert(index, content(index));
      } else if (!std::ranges::equal(found, content(index))) {
        ++wrong;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  }
  EXPECT_EQ(wrong, 0);
  std::uint64_t bytes = 0, records = 0;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    const auto found = cache.find(i);
    bytes += found.size();
    records += found.empty() ? 0 : 1;
  }
  const CacheCounters counters = cache.counters();
  EXPECT_EQ(counters.bytes, bytes);
  EXPECT_EQ(counters.records, records);
  EXPECT_LE(bytes, kBudget);
  EXPECT_GT(bytes, kBudget - 5000) << "filled to less than one record";
  EXPECT_EQ(counters.hits + counters.misses, kThreads * kRounds * kRecords + kRecords);
}

}  // namespace
}  // namespace headrace::test
