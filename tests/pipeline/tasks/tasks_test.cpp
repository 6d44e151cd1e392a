// Tasks, the allowance of workers, and retries.
#include <latch>

#include "headrace/pipeline/compute_arena.h"
#include "headrace/pipeline/tasks/retry.h"
#include "headrace/pipeline/tasks/worker_allowance.h"
#include "headrace/tests/support/fake_clock.h"
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

std::unique_ptr<WorkerAllowance>& last_one() {
  static auto* const allowance = new std::unique_ptr<WorkerAllowance>;
  return *allowance;
}

// What is registered before any library begins runs at exit when oneTBB's own objects are gone.
void give_back(int, void*) { last_one().reset(); }
void register_first() { ::on_exit(give_back, nullptr); }
[[gnu::section(".preinit_array"), gnu::used]] void (*const registering)() = register_first;

[[noreturn]] void keep_one_to_the_end() {
  last_one() = std::make_unique<WorkerAllowance>(2);
  std::exit(0);
}

// As a task does that is the last to leave a loader or a scan while main() returns.
TEST(WorkerAllowance, MayBeGivenBackAfterOneTbbIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(keep_one_to_the_end(), testing::ExitedWithCode(0), "");
}

// What is asked for again, how often, and what is thrown in the end.

DataError data_error(ErrorCode code) { return DataError(code, "no", {.source = "somewhere", .record = 3}); }

// Calls of read() until it returned or threw for good, and how long was waited between them.
struct Patience {
  int reads = 0, asked = 0;
  std::uint64_t waited_ns = 0;
  bool succeeded = false;
};

Patience read(const std::function<void(int)>& attempt, int may_ask = 100) {
  Patience patience;
  const FakeClock clock;
  const std::uint64_t begin = clock.now();
  try {
    read_with_retries(
        clock,
        [&] {
          attempt(patience.reads++);
          return 0;
        },
        [&] { return patience.asked++ < may_ask; });
    patience.succeeded = true;
  } catch (const DataError&) {
  }
  patience.waited_ns = clock.now() - begin;
  return patience;
}

TEST(Retry, AsksAgainForWhatTheSystemRefused) {
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kNotFound}) {
    const Patience patience = read([&](int attempt) {
      if (attempt < 3) throw data_error(code);
    });
    EXPECT_TRUE(patience.succeeded);
    EXPECT_EQ(patience.reads, 4);
    EXPECT_EQ(patience.asked, 3);
    EXPECT_EQ(patience.waited_ns, 105'000'000U) << "a little later each time: after 5, 20 and 80 ms";
  }
}

TEST(Retry, GivesUp) {
  const Patience patience = read([](int) { throw data_error(ErrorCode::kIo); });
  EXPECT_FALSE(patience.succeeded);
  EXPECT_EQ(patience.reads, 4);
}

TEST(Retry, DoesNotWaitWhereItMayNot) {
  const Patience none = read([](int) { throw data_error(ErrorCode::kIo); }, 0);
  EXPECT_EQ(none.reads, 1);
  EXPECT_EQ(none.waited_ns, 0U);
  EXPECT_EQ(read([](int) { throw data_error(ErrorCode::kIo); }, 1).reads, 2);
}

TEST(Retry, AsksOnceForWhatIsNoRefusal) {
  const Patience corrupt = read([](int) { throw data_error(ErrorCode::kDataCorrupt); });
  EXPECT_EQ(corrupt.reads, 1);
  EXPECT_EQ(corrupt.asked, 0);
  const Failure failure{.what = {.code = ErrorCode::kIo, .source = "somewhere", .record = 3, .cause = "no"}};
  EXPECT_EQ(read([&](int) { throw FilterError(failure); }).reads, 1);
}

TEST(Retry, NamesWhatDoesNotNameItself) {
  const StepError error = error_of<StepError>([&] { read([](int) { throw std::runtime_error("lost"); }); });
  EXPECT_EQ(error.step(), "source read");
  EXPECT_EQ(error.cause(), "lost");
}

}  // namespace
}  // namespace headrace::test
