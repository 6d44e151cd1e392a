// Waits of callers for the network: they can be polled, and a signal ends them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "headrace/devices/base/pipe.h"

namespace headrace::remote {

// Calls this thread's poll (set_wait_poll()), if there is one.
void poll_while_waiting();
// Returns whether AbandonableThread marked this thread.
bool is_abandonable() noexcept;

// Waits until done() holds. Throws what this thread's poll throws; `lock` is not held while that is called.
template <typename Done>
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, const Done& done) {
  constexpr std::chrono::milliseconds kPoll{50};
  if (done()) return;
  std::optional<BlockingCall> waits;
  if (!is_abandonable()) waits.emplace();
  while (!changed.wait_for(lock, kPoll, done)) {
    lock.unlock();
    poll_while_waiting();
    lock.lock();
  }
}

}  // namespace headrace::remote
