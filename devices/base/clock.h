// Monotonic time for counters and rates, and the clock for deadlines: code that waits or times out is given one,
// so that tests can set the time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Returns the nanoseconds since an arbitrary start; never goes back.
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

// Thread-safe. Times are nanoseconds since an arbitrary start.
class Clock {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  virtual ~Clock() = default;

  // Never goes back.
  virtual std::uint64_t now() const noexcept = 0;
  // Waits until `woken` is notified, the deadline passes, or spuriously. Returns false if the deadline has passed.
  virtual bool wait(std::condition_variable& woken, std::unique_lock<std::mutex>& lock,
                    std::uint64_t deadline) const = 0;
  virtual void sleep_until(std::uint64_t deadline) const = 0;

  // Waits until done(), which is called under the lock. Returns false if the deadline passed first.
  template <typename Done>
  bool wait_until(std::condition_variable& woken, std::unique_lock<std::mutex>& lock, std::uint64_t deadline,
                  const Done& done) const {
    while (!done()) {
      if (!wait(woken, lock, deadline)) return done();
    }
    return true;
  }

  // Returns the time `seconds` from now; kNever if that is more than a century.
  std::uint64_t after(double seconds) const noexcept {
    constexpr double kCentury = 100.0 * 365 * 86'400;
    return seconds < kCentury ? now() + static_cast<std::uint64_t>(seconds * 1e9) : kNever;
  }
};

// Returns the machine's clock, whose now() is now_ns().
const Clock& system_clock() noexcept;

}  // namespace headrace
