// Calls that may wait for another program for ever, as opening a named pipe does.
#pragma once

#include <atomic>

namespace headrace {

// Counts as one for as long as it lives, so that a signal knows that nothing but the end of the process ends the
// wait. Thread-safe.
class BlockingCall {
 public:
  BlockingCall() noexcept { ++calls_; }
  ~BlockingCall() { --calls_; }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Whether there is one now. Async-signal-safe.
  static bool any() noexcept { return calls_ > 0; }

 private:
  static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");
  inline static std::atomic<int> calls_{0};
};

}  // namespace headrace
