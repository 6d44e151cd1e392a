#include "headrace/devices/base/clock.h"

#include <thread>

namespace headrace {
namespace {

class SystemClock final : public Clock {
 public:
  std::uint64_t now() const noexcept override { return now_ns(); }

  bool wait(std::condition_variable& woken, std::unique_lock<std::mutex>& lock,
            std::uint64_t deadline) const override {
    if (deadline != kNever) return woken.wait_until(lock, point(deadline)) == std::cv_status::no_timeout;
    woken.wait(lock);
    return true;
  }

  void sleep_until(std::uint64_t deadline) const override { std::this_thread::sleep_until(point(deadline)); }

 private:
  static std::chrono::steady_clock::time_point point(std::uint64_t ns) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
  }
};

}  // namespace

// Never destroyed: threads left in user code may read it while the process ends.
const Clock& system_clock() noexcept {
  static const auto* const clock = new SystemClock;
  return *clock;
}

}  // namespace headrace
