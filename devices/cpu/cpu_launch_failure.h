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
  // The first error, once; null where there was none. The launch holds it no longer: what an exception owns must
  // not end on the thread of a branch while the host still reads it.
  std::exception_ptr take() noexcept {
    const std::lock_guard lock(mutex_);
    return std::exchange(error_, nullptr);
  }

 private:
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;  // by mutex_
};

}  // namespace headrace
