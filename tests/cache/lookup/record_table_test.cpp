#include <barrier>

#include "headrace/cache/lookup/record_table.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
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

std::set<std::size_t> numbers_of(int threads) {
  std::set<std::size_t> numbers;
  std::mutex mutex;
  std::barrier all(threads);
  std::vector<std::jthread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      const std::size_t mine = thread_number();
      all.arrive_and_wait();  // all of them live
      EXPECT_EQ(thread_number(), mine);
      const std::lock_guard lock(mutex);
      numbers.insert(mine);
    });
  }
  pool.clear();
  return numbers;
}

TEST(ThreadNumber, IsOneThreadsWhileItLives) {
  const std::size_t mine = thread_number();
  const std::set<std::size_t> first = numbers_of(20);
  EXPECT_EQ(first.size(), 20U);
  EXPECT_FALSE(first.contains(mine));
  EXPECT_EQ(numbers_of(20), first) << "numbers of threads that ended are given again";
}

}  // namespace

}  // namespace headrace::test
