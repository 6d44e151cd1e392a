// Scratch memory of one stream's worker thread. Private to the CPU backend.
#pragma once

#include <cstddef>
#include <new>

#include "headrace/devices/base/memory.h"

namespace headrace {

// Work of one stream runs in order on one thread, so all of it shares one block: no kernel may rely on earlier
// contents. It grows to the largest request and is freed with the thread.
class Workspace {
 public:
  static constexpr std::size_t kAlignment = 64;

  static Workspace& of_this_thread() noexcept {
    thread_local Workspace workspace;
    return workspace;
  }

  // Returns at least `bytes`, aligned to 64. Valid until the next call from this thread.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > bytes_) {
      block_.reset();
      bytes_ = 0;
      block_ = allocate_large(bytes);
      if (block_ == nullptr) throw std::bad_alloc();
      bytes_ = bytes;
    }
    return block_.get();
  }

  static constexpr std::size_t align(std::size_t bytes) noexcept {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  LargeMemory block_;
  std::size_t bytes_ = 0;
};

}  // namespace headrace
