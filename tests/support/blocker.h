// Somebody else's function that does not come back.
#pragma once

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>

namespace headrace::test {

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
