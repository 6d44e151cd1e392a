// The first by position of the errors that threads report in any order.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Thread-safe.
class FirstError {
 public:
  // Returns whether an error before this position is known, so that events at it do not matter.
  bool is_beyond(std::uint64_t position) const noexcept { return position > at_.load(std::memory_order_relaxed); }
  bool any() const noexcept { return at_.load(std::memory_order_acquire) != kNowhere; }

  // Keeps the error with the smallest position, the earliest on ties. `error` may be null: a failure reported
  // elsewhere.
  void note(std::uint64_t position, std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (position >= at_.load(std::memory_order_relaxed)) return;
    error_ = std::move(error);
    at_.store(position, std::memory_order_release);
  }
  // Keeps the earliest error, without positions.
  void note(std::exception_ptr error) noexcept { note(0, std::move(error)); }

  // Returns and removes the error; null if there was none. It is released here, so that no other thread destroys
  // what it owns while the caller still reads it.
  std::exception_ptr take() noexcept {
    const std::lock_guard lock(mutex_);
    at_.store(kNowhere, std::memory_order_release);
    return std::exchange(error_, nullptr);
  }
  // Throws the error if there is one.
  void raise() {
    if (std::exception_ptr error = take()) std::rethrow_exception(std::move(error));
  }

 private:
  static constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

  std::mutex mutex_;
  std::atomic<std::uint64_t> at_{kNowhere};
  std::exception_ptr error_;  // by mutex_
};

}  // namespace headrace
