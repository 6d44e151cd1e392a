// Waits for the network: pauses between attempts, and the waits of callers, which can be polled.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"

namespace headrace::remote {

// When a request is repeated, and when it is given up.

Timing timing() noexcept;

// Whether an answer of this status may be another one soon: 408, 429 and 5xx but 501 and 505.
bool status_may_pass(long status) noexcept;

// One call's attempts. Not thread-safe.
class Retries {
 public:
  // Begins anew, since something has arrived.
  void progress() noexcept;
  // Returns the pause before the next attempt, doubled from one to the next, half of it random, and no shorter
  // than the seconds that the server asked for; std::nullopt if that would be after the deadline.
  std::optional<std::chrono::nanoseconds> next_pause(std::optional<std::uint64_t> retry_after);
  // Returns "gave up after 5 attempts in 60 s".
  std::string given_up() const;

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  int attempts_ = 0;
};

// Waits of callers for the network: they can be polled, and a signal ends them.

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
