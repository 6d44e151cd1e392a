// The error of the smallest position among those that threads find in any order.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

namespace headrace {

// Thread-safe.
class FirstError {
 public:
  // Whether an error before this position is known: then what happens at it is no matter.
  bool is_beyond(std::uint64_t position) const noexcept { return position > at_.load(std::memory_order_relaxed); }

  void note(std::uint64_t position, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ && position >= at_.load()) return;
    at_.store(position);
    error_ = std::move(error);
  }

  // Throws it, where there is one, and holds it no longer.
  void raise() {
    std::exception_ptr error;
    {
      const std::lock_guard lock(mutex_);
      error = std::exchange(error_, nullptr);
    }
    if (error) std::rethrow_exception(std::move(error));
  }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> at_{std::numeric_limits<std::uint64_t>::max()};
  std::exception_ptr error_;  // by mutex_
};

}  // namespace headrace
