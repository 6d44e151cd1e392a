#include "headrace/devices/base/thread_number.h"

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace headrace {
namespace {

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
}  // namespace headrace
