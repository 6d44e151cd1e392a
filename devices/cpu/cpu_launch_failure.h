// The first error of one launch of captured work. Private to the CPU backend.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace headrace {

// Shared by the launch's branches: the error of one skips the rest of all. Thread-safe.
class CpuLaunchFailure {
 public:
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  // `error` may be null: the stream has failed before, and reports that itself.
  void keep(std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!failed_.load(std::memory_order_relaxed)) error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }
  std::exception_ptr first() const noexcept {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::exception_ptr error_;  // by mutex_
};

}  // namespace headrace
