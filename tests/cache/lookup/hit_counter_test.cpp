#include "headrace/cache/lookup/hit_counter.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

namespace headrace {
namespace {

// More threads than there are tallies for one each, all alive.
TEST(HitCounter, CountsEachThreadsHitsAndMisses) {
  constexpr int kThreads = 100, kHits = 1000;
  HitCounter counter;
  for (int round = 1; round <= 2; ++round) {
    std::barrier all(kThreads);
    std::vector<std::jthread> pool;
    for (int i = 0; i < kThreads; ++i) {
      pool.emplace_back([&] {
        counter.miss();
        all.arrive_and_wait();
        for (int hit = 0; hit < kHits; ++hit) counter.hit();
        all.arrive_and_wait();
      });
    }
    pool.clear();
    EXPECT_EQ(counter.hits(), static_cast<std::uint64_t>(round * kThreads * kHits));
    EXPECT_EQ(counter.misses(), static_cast<std::uint64_t>(round * kThreads));
  }
}

}  // namespace
}  // namespace headrace
