#include "headrace/pipeline/engine/engine_thread.h"

#include <gtest/gtest.h>

#include <latch>

#include "headrace/devices/base/clock.h"

namespace headrace {
namespace {

using std::chrono::milliseconds;

TEST(EngineThread, IsJoinedWhenItsBodyEnds) {
  std::atomic<int> ran{0};
  EngineThread thread([&](ThreadState&) { ++ran; });
  thread.end(milliseconds(0));
  EXPECT_EQ(ran.load(), 1);
  thread.end(milliseconds(0));  // again: nothing to do
}

TEST(EngineThread, IsWaitedForWhileItRunsOurCode) {
  std::atomic<bool> done{false};
  EngineThread thread([&](ThreadState&) {
    std::this_thread::sleep_for(milliseconds(50));
    done = true;
  });
  thread.end(milliseconds(1));
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
    const Stopwatch watch;
    thread.end(milliseconds(30));
    EXPECT_LT(watch.seconds(), 1.0);
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
