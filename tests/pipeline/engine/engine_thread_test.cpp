#include <latch>

#include "headrace/pipeline/engine/engine_thread.h"
#include "headrace/pipeline/operations.h"
#include "headrace/tests/support/fake_clock.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using std::chrono::seconds;

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
