// What every cache of samples must do. A Maker makes one: `make(budget_bytes)` gives a
// std::unique_ptr<SampleCache>.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "headrace/cache/sample_cache.h"
#include "headrace/devices/base/error.h"
#include "headrace/tests/support/cache_samples.h"

namespace headrace::test {

template <typename Maker>
struct SampleCacheSuite : testing::Test {
  std::unique_ptr<SampleCache> make(std::uint64_t budget_bytes = 0) { return maker.make(budget_bytes); }
  Maker maker;
};
TYPED_TEST_SUITE_P(SampleCacheSuite);

TYPED_TEST_P(SampleCacheSuite, GivesBackWhatWasStored) {
  constexpr std::uint64_t kRecords = 5000;  // more than one slab
  const auto made = this->make();
  SampleCache& cache = *made;
  cache.bind(1, kRecords);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    EXPECT_TRUE(found(cache, i).empty());
    EXPECT_TRUE(cache.insert(i, content(i)));
    bytes += content(i).size();
  }
  for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(holds(cache, i)) << i;
  const CacheCounters counters = cache.counters();
  EXPECT_EQ(counters.records, kRecords);
  EXPECT_EQ(counters.bytes, bytes);
  EXPECT_EQ(counters.misses, kRecords);
  EXPECT_EQ(counters.hits, kRecords);
  EXPECT_EQ(counters.refused, 0U);
}

TYPED_TEST_P(SampleCacheSuite, KeepsLargeRecords) {
  const auto made = this->make();
  SampleCache& cache = *made;
  cache.bind(1, 3);
  const Bytes large(10'000'000, std::byte{3});
  EXPECT_TRUE(cache.insert(1, large));
  EXPECT_TRUE(cache.insert(2, content(2)));
  EXPECT_TRUE(found(cache, 1) == large);
  EXPECT_TRUE(holds(cache, 2));
}

TYPED_TEST_P(SampleCacheSuite, TheFirstStoredStays) {
  const auto made = this->make();
  SampleCache& cache = *made;
  cache.bind(1, 2);
  EXPECT_TRUE(cache.insert(0, content(5)));
  EXPECT_TRUE(cache.insert(0, content(6)));
  EXPECT_TRUE(found(cache, 0) == content(5));
  EXPECT_EQ(cache.counters().records, 1U);
}

TYPED_TEST_P(SampleCacheSuite, KeepsToItsBudgetExactly) {
  const auto made = this->make(1000);
  SampleCache& cache = *made;
  cache.bind(1, 20);
  for (std::uint64_t i = 0; i < 9; ++i) EXPECT_TRUE(cache.insert(i, Bytes(100)));
  EXPECT_FALSE(cache.insert(9, Bytes(101)));
  EXPECT_TRUE(found(cache, 9).empty());
  EXPECT_TRUE(cache.insert(10, Bytes(100))) << "what fits to the last byte is taken";
  EXPECT_FALSE(cache.insert(11, Bytes(1)));
  EXPECT_FALSE(cache.insert(12, Bytes(5000)));
  EXPECT_EQ(cache.counters().bytes, 1000U);
  EXPECT_EQ(cache.counters().records, 10U);
  EXPECT_EQ(cache.counters().refused, 3U);
  EXPECT_FALSE(found(cache, 0).empty()) << "nothing is evicted";
}

TYPED_TEST_P(SampleCacheSuite, BelongsToOneStream) {
  const auto made = this->make();
  SampleCache& cache = *made;
  EXPECT_TRUE(found(cache, 0).empty()) << "nothing is there before it is bound";
  EXPECT_THROW(cache.insert(0, content(0)), Error);
  cache.bind(7, 10);
  cache.insert(0, content(0));
  cache.bind(7, 10);
  EXPECT_TRUE(holds(cache, 0)) << "the same stream finds it warm";
  EXPECT_THROW(cache.bind(8, 10), ConfigError);
  EXPECT_THROW(cache.bind(7, 11), ConfigError);
  EXPECT_TRUE(holds(cache, 0));
}

TYPED_TEST_P(SampleCacheSuite, KnowsNoRecordBeyondItsEnd) {
  const auto made = this->make();
  SampleCache& cache = *made;
  cache.bind(7, 10);
  EXPECT_TRUE(found(cache, 10).empty());
  EXPECT_TRUE(found(cache, ~std::uint64_t{0}).empty());
  EXPECT_THROW(cache.insert(10, content(0)), Error);
  EXPECT_THROW(cache.insert(0, {}), Error);
}

// All threads fill and read the same records: whoever finds one finds it whole.
TYPED_TEST_P(SampleCacheSuite, IsFilledAndReadByManyThreadsAtOnce) {
  constexpr std::uint64_t kRecords = 2000, kBudget = 3'000'000;
  constexpr int kThreads = 8, kRounds = 3;
  const auto made = this->make(kBudget);
  SampleCache& cache = *made;
  cache.bind(1, kRecords);
  std::atomic<int> wrong{0};
  const auto work = [&](std::uint64_t start) {
    for (std::uint64_t i = 0; i < kRounds * kRecords; ++i) {
      const std::uint64_t index = (start * 251 + i * 3) % kRecords;
      const Bytes there = found(cache, index);
      if (there.empty()) {
        cache.insert(index, content(index));
      } else if (there != content(index)) {
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
    const Bytes there = found(cache, i);
    bytes += there.size();
    records += there.empty() ? 0 : 1;
  }
  const CacheCounters counters = cache.counters();
  EXPECT_EQ(counters.bytes, bytes);
  EXPECT_EQ(counters.records, records);
  EXPECT_LE(bytes, kBudget);
  EXPECT_GT(bytes, kBudget - 5000) << "filled to less than one record";
  EXPECT_EQ(counters.hits + counters.misses, kThreads * kRounds * kRecords + kRecords);
}

REGISTER_TYPED_TEST_SUITE_P(SampleCacheSuite, GivesBackWhatWasStored, KeepsLargeRecords, TheFirstStoredStays,
                            KeepsToItsBudgetExactly, BelongsToOneStream, KnowsNoRecordBeyondItsEnd,
                            IsFilledAndReadByManyThreadsAtOnce);

}  // namespace headrace::test
