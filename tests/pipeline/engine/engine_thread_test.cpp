#include "headrace/pipeline/engine/engine_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "headrace/tests/support/fake_clock.h"

namespace headrace {
namespace {

using std::chrono::seconds;
using test::FakeClock;

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
}  // namespace headrace
