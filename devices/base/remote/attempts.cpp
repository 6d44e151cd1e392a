#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <random>

#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/attempts.h"

namespace headrace::remote {
namespace {

struct TimingNow {
  std::mutex mutex;
  Timing timing = {};
};
TimingNow& timing_now() {
  static TimingNow now;
  return now;
}

// Between a half and one: clients that failed together do not return together.
double jitter() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.5, 1.0)(random);
}

}  // namespace

void set_timing(const Timing& timing) {
  const std::lock_guard lock(timing_now().mutex);
  timing_now().timing = timing;
}

Timing timing() noexcept {
  const std::lock_guard lock(timing_now().mutex);
  return timing_now().timing;
}

bool status_may_pass(long status) noexcept {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

void Retries::progress() noexcept {
  since_ = std::chrono::steady_clock::now();
  attempts_ = 0;
}

std::optional<std::chrono::nanoseconds> Retries::next_pause(std::optional<std::uint64_t> retry_after) {
  const Timing now = timing();
  const int doublings = std::min(attempts_++, 16);
  std::chrono::duration<double> pause =
      std::min<std::chrono::duration<double>>(now.first_pause * (1 << doublings), now.max_pause);
  pause *= jitter();
  if (retry_after) pause = std::max(pause, std::chrono::duration<double>(static_cast<double>(*retry_after)));
  const auto waited = std::chrono::steady_clock::now() - since_;
  if (waited + pause > now.deadline) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(pause);
}

std::string Retries::given_up() const {
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - since_;
  return fmt::format("gave up after {} attempt{} in {:.1f} s", attempts_, attempts_ == 1 ? "" : "s",
                     waited.count());
}

namespace {

thread_local const std::function<void()>* wait_poll = nullptr;
thread_local bool abandonable = false;

}  // namespace

AbandonableThread::AbandonableThread() noexcept { abandonable = true; }

const std::function<void()>* set_wait_poll(const std::function<void()>* look) noexcept {
  return std::exchange(wait_poll, look);
}

void poll_while_waiting() {
  if (wait_poll != nullptr) (*wait_poll)();
}

bool is_abandonable() noexcept { return abandonable; }

}  // namespace headrace::remote
