// Failures that are not the data's: broken invariants, the first of several threads' errors, and memory or threads
// that the system refuses.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"

namespace headrace::detail {

// HEADRACE_CHECK: an invariant of Headrace itself. A breach is a bug, never the user's mistake.

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line,
                                      const std::string& message) {
  throw Error(ErrorCode::kInternal, message + " [" + condition + " at " + file + ":" + std::to_string(line) + "]",
              "this is a bug in Headrace; please report it with the command that led here");
}
}  // namespace headrace::detail

#define HEADRACE_CHECK(condition, message)                                                       \
  do {                                                                                           \
    if (!(condition)) ::headrace::detail::check_failed(#condition, __FILE__, __LINE__, message); \
  } while (false)

// The first by position of the errors that threads report in any order.

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

// Turns the system's refusals of memory and threads into errors that say what failed and what to do.

// Returns an Error(kOutOfMemory): there was no memory for `what` ("a batch"). `bytes` 0: size unknown.
Error no_memory_for(const std::string& what, std::uint64_t bytes = 0);

// Returns whether the exception says only that memory or threads ran out.
bool is_bare_refusal(const std::exception& cause) noexcept;
// Returns an error that explains the exception; `doing` is the activity: "decode". REQUIRES:
// is_bare_refusal(cause).
Error explain_refusal(const std::exception& cause, const std::string& doing);

// Starts a thread for `what` ("a replica's stream"). Throws Error(kIo) if the system has none left.
std::thread start_thread(const std::string& what, std::function<void()> body);

}  // namespace headrace
