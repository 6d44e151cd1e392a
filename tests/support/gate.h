// A gate that holds back a stream's work until the test opens it.
#pragma once

#include <latch>

#include "headrace/tests/support/test.h"

namespace headrace::test {

// Opens itself when it goes out of scope, so that a failing test does not hang: declare it after the streams.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }

  void open() noexcept {
    if (open_) return;
    open_ = true;
    latch_->count_down();
  }

  // A host function that blocks until the gate is open; may outlive the gate.
  std::function<void()> blocker() const {
    return [latch = latch_] { latch->wait(); };
  }

 private:
  std::shared_ptr<std::latch> latch_ = std::make_shared<std::latch>(1);
  bool open_ = false;
};

// Somebody else's function that does not come back.

// Blocks on one record until the test says so; the threads that hang in it keep it alive. One that comes after
// open() passes.
class Blocker {
 public:
  // A function of the record; one that does not block returns at once.
  auto at(std::int64_t record) const {
    return [state = state_, record](auto value) {
      if (static_cast<std::int64_t>(value) != record) return;
      ++state->inside;
      state->open.wait();
      --state->inside;
      state->inside.notify_all();
    };
  }
  // Lets the threads go and waits until they have left the function.
  void open() const {
    state_->open.count_down();
    for (int inside = 0; (inside = state_->inside.load()) > 0;) state_->inside.wait(inside);
  }

 private:
  struct State {
    std::latch open{1};
    std::atomic<int> inside{0};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace headrace::test
