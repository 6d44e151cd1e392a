#include "headrace/pipeline/tasks/thread_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/operations.h"

namespace headrace {
namespace {

thread_local std::shared_ptr<void>* kept_here = nullptr;

}  // namespace

std::shared_ptr<void>* kept_by_user_code() noexcept { return kept_here; }

void ThreadState::begin(const std::string& step, std::uint64_t record) noexcept {
  record_.store(record, std::memory_order_relaxed);
  since_.store(now_ns(), std::memory_order_relaxed);
  step_.store(&step, std::memory_order_release);
}

void ThreadState::enter_user_code() noexcept {
  kept_here = &kept_;
  mode_.store(Mode::kUserCode);
}

void ThreadState::leave_user_code() {
  kept_here = nullptr;
  Mode expected = Mode::kUserCode;
  if (mode_.compare_exchange_strong(expected, Mode::kOurs)) return;
  kept_.reset();
  throw Abandoned{};
}

void ThreadState::let_go() noexcept {
  if (kept_ == nullptr) return;
  Mode expected = Mode::kOurs;
  const bool counted = mode_.compare_exchange_strong(expected, Mode::kUserCode);
  kept_.reset();
  expected = Mode::kUserCode;
  if (counted) mode_.compare_exchange_strong(expected, Mode::kOurs);
}

std::string ThreadState::doing() const {
  const std::string* step = step_.load(std::memory_order_acquire);
  return step == nullptr ? std::string() : fmt::format("{} on record {}", *step, record_.load());
}

void ThreadState::finish() {
  let_go();
  const std::lock_guard lock(mutex_);
  if (mode_.load() != Mode::kAbandoned) mode_.store(Mode::kDone);
  done_.notify_all();
}

bool ThreadState::end(const Clock& clock, std::uint64_t deadline) {
  constexpr std::uint64_t kPollNs = 1'000'000;  // whether it is in user code by now
  const auto done = [this] { return mode_.load() == Mode::kDone; };
  std::unique_lock lock(mutex_);
  while (!done()) {
    if (clock.wait_until(done_, lock, std::max(deadline, clock.now() + kPollNs), done)) return true;
    Mode expected = Mode::kUserCode;
    if (mode_.compare_exchange_strong(expected, Mode::kAbandoned)) return false;
  }
  return true;
}

}  // namespace headrace
