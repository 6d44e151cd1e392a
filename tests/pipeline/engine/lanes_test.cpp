// Tasks of the engine, their claims and the engine's threads.
#include <deque>
#include <latch>

#include "headrace/pipeline/engine/claim_counter.h"
#include "headrace/pipeline/engine/engine_thread.h"
#include "headrace/pipeline/engine/lanes.h"
#include "headrace/pipeline/operations.h"
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

TEST(ClaimCounter, GivesEveryNumberOutInOrderAndSaysWhichIsLast) {
  ClaimCounter counter;
  EXPECT_TRUE(counter.empty());
  EXPECT_EQ(counter.claim(5).count, 0);
  counter.offer(7);
  EXPECT_FALSE(counter.empty());
  const ClaimCounter::Range first = counter.claim(5), second = counter.claim(5), none = counter.claim(5);
  EXPECT_EQ(first.first, 0);
  EXPECT_EQ(first.count, 5);
  EXPECT_FALSE(first.is_last);
  EXPECT_EQ(second.first, 5);
  EXPECT_EQ(second.count, 2);
  EXPECT_TRUE(second.is_last);
  EXPECT_EQ(none.count, 0);
  EXPECT_FALSE(none.is_last);
  EXPECT_TRUE(counter.empty());
}

TEST(ClaimCounter, HoldsTheLargestOffer) {
  ClaimCounter counter;
  counter.offer(ClaimCounter::kMaxCount);
  EXPECT_EQ(counter.claim(ClaimCounter::kMaxCount - 1).count, ClaimCounter::kMaxCount - 1);
  const ClaimCounter::Range last = counter.claim(10);
  EXPECT_EQ(last.first, ClaimCounter::kMaxCount - 1);
  EXPECT_EQ(last.count, 1);
  EXPECT_TRUE(last.is_last);
}

// Offers follow one another as soon as one is used up, while late threads still look at the one before: as slots
// do that are filled again.
TEST(ClaimCounter, GivesEveryNumberOfEveryOfferToOneThread) {
  constexpr int kThreads = 4, kOffers = 2000;
  constexpr std::int64_t kCount = 37;
  ClaimCounter counter;
  std::atomic<std::int64_t> pending{0}, sum{0};
  std::atomic<int> last{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const ClaimCounter::Range range = counter.claim(3);
        for (std::int64_t i = range.first; i < range.first + range.count; ++i) sum += i;
        last += range.is_last ? 1 : 0;
        pending -= range.count;
        if (range.count == 0) std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < kOffers; ++i) {
    pending = kCount;
    counter.offer(kCount);
    while (pending != 0) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum.load(), kOffers * (kCount * (kCount - 1) / 2));
  EXPECT_EQ(last.load(), kOffers);
}

TEST(EngineThread, IsJoinedWhenItsBodyEnds) {
  const FakeClock clock;
  std::atomic<int> ran{0};
  EngineThread thread([&](ThreadState&) { ++ran; });
  thread.end(clock, clock.now());
  EXPECT_EQ(ran.load(), 1);
  thread.end(clock, clock.now());  // again: nothing to do
}

TEST(EngineThread, IsWaitedForWhileItRunsOurCode) {
  FakeClock clock;
  std::latch leave{1};
  std::atomic<bool> done{false}, ended{false};
  EngineThread thread([&](ThreadState&) {
    leave.wait();
    done = true;
  });
  std::thread stopper([&] {
    thread.end(clock, clock.after(1));
    ended = true;
  });
  for (int i = 0; i < 5; ++i) {
    clock.await_waiting(1);
    clock.advance(seconds(1));
  }
  clock.await_waiting(1);
  EXPECT_FALSE(ended.load());
  leave.count_down();
  stopper.join();
  EXPECT_TRUE(done.load());
}

TEST(EngineThread, IsGivenUpInsideUserCodeAndEndsAfterIt) {
  struct Shared {
    std::latch entered{1}, leave{1}, gone{1};
    std::atomic<bool> went_on{false};
  };
  const auto shared = std::make_shared<Shared>();
  // Tells when the body has ended, however it does.
  struct Farewell {
    std::shared_ptr<Shared> shared;
    ~Farewell() { shared->gone.count_down(); }
  };
  FakeClock clock;
  {
    EngineThread thread([shared](ThreadState& state) {
      const Farewell farewell{shared};
      state.enter_user_code();
      shared->entered.count_down();
      shared->leave.wait();
      state.leave_user_code();
      shared->went_on = true;
    });
    shared->entered.wait();
    std::thread stopper([&] { thread.end(clock, clock.after(30)); });
    clock.await_waiting(1);
    clock.advance(seconds(30));
    stopper.join();
  }
  shared->leave.count_down();
  shared->gone.wait();
  EXPECT_FALSE(shared->went_on.load());
}

// Notes the thread that destroys it.
struct KeptByThread {
  explicit KeptByThread(std::shared_ptr<std::promise<std::thread::id>> gone) : gone_(std::move(gone)) {}
  ~KeptByThread() { gone_->set_value(std::this_thread::get_id()); }
  std::shared_ptr<std::promise<std::thread::id>> gone_;
};

TEST(EngineThread, LetsGoOfWhatUserCodeKeptOnItsOwnThread) {
  for (const bool abandoned : {false, true}) {
    const auto gone = std::make_shared<std::promise<std::thread::id>>();
    std::thread::id own;
    std::latch kept{1}, leave{1};
    EngineThread thread([&](ThreadState& state) {
      own = std::this_thread::get_id();
      run_user_code(state, [&] { *kept_by_user_code() = std::make_shared<KeptByThread>(gone); });
      EXPECT_EQ(kept_by_user_code(), nullptr) << "outside of user code";
      run_user_code(state, [&] {
        EXPECT_NE(*kept_by_user_code(), nullptr) << "from call to call";
        kept.count_down();
        if (abandoned) leave.wait();
      });
    });
    kept.wait();
    thread.end(system_clock(), system_clock().after(abandoned ? 0 : 30));
    leave.count_down();
    EXPECT_EQ(gone->get_future().get(), own);
  }
  EXPECT_EQ(kept_by_user_code(), nullptr) << "on a thread that no engine runs";
}

TEST(ThreadState, TellsWhatItDoes) {
  ThreadState state;
  const std::string step = "decode";
  EXPECT_EQ(state.doing(), "");
  state.begin(step, 7);
  EXPECT_EQ(state.doing(), "decode on record 7");
  state.idle();
  EXPECT_EQ(state.doing(), "");
}

}  // namespace
}  // namespace headrace::test
