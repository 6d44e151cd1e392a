// When a request is repeated, and when it is given up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "headrace/devices/base/remote.h"

namespace headrace::remote {

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

}  // namespace headrace::remote
