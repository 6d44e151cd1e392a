// Bytes that come once, in order: from a named pipe, a terminal or another program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "headrace/devices/base/descriptor.h"

namespace headrace {

// A call that may wait forever for another program, such as opening a named pipe. While one lives, signal handlers
// know that only the end of the process ends the wait. Thread-safe.
class BlockingCall {
 public:
  BlockingCall() noexcept { ++calls_; }
  ~BlockingCall() { --calls_; }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Returns whether any call lives now. Async-signal-safe.
  static bool any() noexcept { return calls_ > 0; }

 private:
  static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");
  inline static std::atomic<int> calls_{0};
};

// One thread at a time. Failures are DataErrors that name the path.
class Pipe {
 public:
  // Waits until a named pipe has a writer.
  static Pipe open(const std::filesystem::path& path);

  // Waits for and reads at least one byte; returns how many, 0 at the end.
  std::size_t read_some(std::span<std::byte> into);

 private:
  Pipe(std::filesystem::path path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t offset_ = 0;
};

}  // namespace headrace
