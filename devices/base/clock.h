// Monotonic time for counters and rates.
#pragma once

#include <chrono>
#include <cstdint>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Nanoseconds since an arbitrary start; never goes back.
inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Seconds since construction.
class Stopwatch {
 public:
  double seconds() const noexcept { return static_cast<double>(now_ns() - start_) * 1e-9; }
  std::uint64_t nanoseconds() const noexcept { return now_ns() - start_; }
  void restart() noexcept { start_ = now_ns(); }

 private:
  std::uint64_t start_ = now_ns();
};

}  // namespace headrace
