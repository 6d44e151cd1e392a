#include "headrace/devices/cpu/cpu_collective.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(CpuBarrier, NobodyLeavesBeforeAllHaveCome) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 2000;
  CpuBarrier barrier(kThreads);
  std::atomic<int> arrivals = 0;
  std::atomic<bool> early = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 1; round <= kRounds; ++round) {
        ++arrivals;
        const bool met = barrier.wait();
        if (!met || arrivals < kThreads * round) early = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(early);
  EXPECT_EQ(arrivals, kThreads * kRounds);
}

TEST(CpuBarrier, CancellingReleasesAtAnyMoment) {
  for (int round = 0; round < 300; ++round) {
    CpuBarrier barrier(3);
    std::atomic<int> released = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        if (!barrier.wait()) ++released;
      });
    }
    if (round % 2 == 0) std::this_thread::yield();
    barrier.cancel("first");
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(released, 2);
    barrier.cancel("second");
    EXPECT_FALSE(barrier.wait());
    EXPECT_EQ(barrier.reason(), "first");
  }
}

}  // namespace
}  // namespace headrace::test
