#include <deque>
#include <latch>

#include "headrace/pipeline/engine/lanes.h"
#include "headrace/pipeline/tasks/worker_allowance.h"
#include "headrace/tests/support/fake_clock.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using std::chrono::seconds;

// Runs tasks when it is told to, in the calling thread.
class HandArena final : public ComputeArena {
 public:
  void enqueue(std::function<void()> task) override { tasks.push_back(std::move(task)); }
  int max_concurrency() const override { return 64; }
  void run_one() {
    const auto task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }

  std::deque<std::function<void()>> tasks;
};

// Counts down a number of pieces of work.
class CountedWork : public LaneBody {
 public:
  explicit CountedWork(int pieces) : left(pieces) {}
  bool run_next(Lane&) override {
    for (int now = left.load(); now > 0;) {
      if (!left.compare_exchange_weak(now, now - 1)) continue;
      done.fetch_add(1);
      return true;
    }
    return false;
  }
  bool has_work() const noexcept override { return left.load() > 0; }

  std::atomic<int> left, done{0};
};

struct LaneRun {
  LaneRun(std::shared_ptr<ComputeArena> arena, int max_lanes, LaneBody& body)
      : lanes(std::move(arena), max_lanes, 1, body, budget, clock) {}
  FakeClock clock;
  MemoryBudget budget{"none", 0};
  Lanes lanes;
};

TEST(Lanes, AreStartedAsFarAsThereIsWorkAndTheyAreAllowed) {
  const auto arena = std::make_shared<HandArena>();
  CountedWork work(100);
  LaneRun run(arena, 8, work);
  run.lanes.wake(5);
  EXPECT_EQ(arena->tasks.size(), 0U) << "none is allowed yet";
  run.lanes.allow(3);
  EXPECT_EQ(arena->tasks.size(), 3U);
  run.lanes.wake(5);
  EXPECT_EQ(arena->tasks.size(), 3U) << "they will find it";
  arena->run_one();
  EXPECT_EQ(work.left.load(), 0) << "a lane goes on until nothing is left";
  while (!arena->tasks.empty()) arena->run_one();
  work.left = 1;
  run.lanes.wake(1);
  EXPECT_EQ(arena->tasks.size(), 1U) << "one for one piece";
  arena->run_one();
  EXPECT_EQ(work.done.load(), 101);
}

TEST(Lanes, CountTheTimeThatAllowedOnesHadNothingToDo) {
  const auto arena = std::make_shared<HandArena>();
  CountedWork work(0);
  LaneRun run(arena, 3, work);
  run.clock.advance(seconds(5));
  EXPECT_EQ(run.lanes.waited_ns(run.clock.now()), 0U) << "none is allowed yet";
  run.lanes.allow(2);
  run.clock.advance(seconds(3));
  EXPECT_EQ(run.lanes.waited_ns(run.clock.now()), 6'000'000'000U);
  work.left = 1;
  run.lanes.wake(1);
  arena->run_one();
  run.lanes.allow(1);
  run.clock.advance(seconds(1));
  EXPECT_EQ(run.lanes.waited_ns(run.clock.now()), 4'000'000'000U) << "one that waited is allowed no longer";
}

// Work that comes after a lane has looked for the last time, before it has ended.
TEST(Lanes, LeaveNoWorkBehind) {
  class LateWork final : public CountedWork {
   public:
    LateWork() : CountedWork(1) {}
    bool run_next(Lane& lane) override {
      const bool ran = CountedWork::run_next(lane);
      if (!ran && !late) {
        late = true;
        left = 1;  // wake() finds the lane still counted as running
        run->lanes.wake(1);
      }
      return ran;
    }
    LaneRun* run = nullptr;
    bool late = false;
  };
  const auto arena = std::make_shared<HandArena>();
  LateWork work;
  LaneRun run(arena, 1, work);
  work.run = &run;
  run.lanes.allow(1);
  while (!arena->tasks.empty()) arena->run_one();
  EXPECT_EQ(work.done.load(), 2);
}

TEST(Lanes, EndBeyondWhatIsAllowed) {
  class Lowering final : public CountedWork {
   public:
    Lowering() : CountedWork(100) {}
    bool run_next(Lane& lane) override {
      if (done.load() == 10) run->lanes.allow(1);
      return CountedWork::run_next(lane);
    }
    LaneRun* run = nullptr;
  };
  const auto arena = std::make_shared<HandArena>();
  Lowering work;
  LaneRun run(arena, 2, work);
  work.run = &run;
  run.lanes.allow(2);
  ASSERT_EQ(arena->tasks.size(), 2U);
  arena->run_one();
  EXPECT_LT(work.done.load(), 20) << "two count as running, one is allowed";
  while (!arena->tasks.empty()) arena->run_one();
  EXPECT_EQ(work.done.load(), 100) << "the other one did the rest";
}

TEST(Lanes, DoNotStartOnceStopped) {
  const auto arena = std::make_shared<HandArena>();
  CountedWork work(10);
  LaneRun run(arena, 2, work);
  run.lanes.allow(2);
  run.lanes.stop();
  run.lanes.end(Clock::kNever, nullptr);  // what was enqueued but has not begun is not waited for
  while (!arena->tasks.empty()) arena->run_one();
  EXPECT_EQ(work.done.load(), 0);
}

TEST(Lanes, RunOnOneTbbWorkersSideBySide) {
  class Meeting final : public CountedWork {
   public:
    Meeting() : CountedWork(2) {}
    bool run_next(Lane& lane) override {
      if (!CountedWork::run_next(lane)) return false;
      both.arrive_and_wait();
      return true;
    }
    std::latch both{2};
  };
  const WorkerAllowance allowance(2);
  Meeting work;
  LaneRun run(make_own_arena(2, {}), 2, work);
  run.lanes.allow(2);
  work.both.wait();
  run.lanes.stop();
  run.lanes.end(Clock::kNever, nullptr);
  EXPECT_EQ(work.done.load(), 2);
}

TEST(Lanes, AreLeftToUserCodeThatDoesNotComeBack) {
  class Stuck final : public LaneBody {
   public:
    bool run_next(Lane& lane) override {
      lane.state.enter_user_code();
      entered.count_down();
      open.wait();
      left.count_down();
      lane.state.leave_user_code();  // throws
      went_on = true;
      return false;
    }
    bool has_work() const noexcept override { return true; }
    std::latch entered{1}, open{1}, left{1};
    std::atomic<bool> went_on{false};
  };
  const WorkerAllowance allowance(2);
  const auto work = std::make_shared<Stuck>();
  const auto run = std::make_shared<LaneRun>(make_own_arena(2, {}), 1, *work);
  run->lanes.allow(1);
  work->entered.wait();
  run->lanes.stop();
  std::atomic<bool> given_up{false};
  std::thread stopper([&] {
    run->lanes.end(run->clock.after(30), run);
    given_up = true;
  });
  run->clock.await_waiting(1);
  run->clock.advance(seconds(29));
  run->clock.await_waiting(1);
  EXPECT_FALSE(given_up.load());
  run->clock.advance(seconds(1));
  stopper.join();
  EXPECT_EQ(run.use_count(), 2) << "the lane keeps what it may still touch";
  work->open.count_down();
  work->left.wait();
  while (run.use_count() > 1) std::this_thread::yield();
  EXPECT_FALSE(work->went_on.load());
}

}  // namespace
}  // namespace headrace::test
