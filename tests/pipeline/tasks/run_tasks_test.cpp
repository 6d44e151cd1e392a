#include <latch>

#include "headrace/pipeline/compute_arena.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(RunTasks, CallsEachOnceAndReturnsAfterTheLast) {
  for (const int threads : {0, 1, 4}) {
    for (const std::size_t count : {0U, 1U, 3U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      run_tasks(threads, count, [&](std::size_t i) { ++calls[i]; });
      for (const auto& each : calls) EXPECT_EQ(each.load(), 1) << threads << " threads";
    }
  }
}

TEST(RunTasks, OnOneThreadIsTheCallers) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  run_tasks(1, 100, [&](std::size_t) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids, std::set{std::this_thread::get_id()});
}

// Also where there are fewer processors.
TEST(RunTasks, RunsAsManyAtATimeAsThereAreThreads) {
  std::latch all(4);
  run_tasks(4, 4, [&](std::size_t) { all.arrive_and_wait(); });
}

TEST(RunTasks, ThrowsWhatATaskThrew) {
  EXPECT_THROW(run_tasks(2, 10, [](std::size_t i) { i == 7 ? throw std::runtime_error("seven") : void(); }),
               std::runtime_error);
}

}  // namespace
}  // namespace headrace::test
