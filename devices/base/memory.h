// Large memory, memory handed out piece by piece, and memory fetched before it is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace headrace {

// The amount of memory, and blocks of many pages.

// Memory for blocks of many pages.
struct FreeMemory {
  void operator()(std::byte* memory) const noexcept;
};
using LargeMemory = std::unique_ptr<std::byte, FreeMemory>;

// Allocates uninitialised memory, aligned to 64 bytes; null if there is none left. Blocks of megabytes lie on huge
// pages if the system has them (on Linux also if it gives them only on request). That saves a page walk for nearly
// every sample and row, which on a virtual machine costs as much as reading it. REQUIRES: `bytes` > 0.
LargeMemory allocate_large(std::size_t bytes) noexcept;

// Gives freed memory back to the system, where malloc keeps it: what a scan of millions of files used.
void return_freed_memory() noexcept;

// Returns the maximum that this process can use, in bytes: the machine's memory, or its control group's limit.
std::uint64_t machine_memory_bytes();

// Memory handed out piece by piece and freed together: many small pieces without an allocation each.

// Pieces keep their address while it lives, even if it is moved. Not thread-safe.
class ByteSlabs {
 public:
  static constexpr std::size_t kAlignment = 16;  // of each piece

  // Larger slabs lie on fewer pages, smaller ones waste less of the last.
  explicit ByteSlabs(std::size_t slab_bytes = std::size_t{1} << 20) : slab_bytes_(slab_bytes) {}

  // Returns uninitialised memory. Throws std::bad_alloc.
  std::span<std::byte> allocate(std::size_t size) {
    const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded > slab_bytes_ / 8) return {add(rounded), size};
    if (rounded > left_) {
      next_ = add(slab_bytes_);
      left_ = slab_bytes_;
    }
    left_ -= rounded;
    return {std::exchange(next_, next_ + rounded), size};
  }

 private:
  std::byte* add(std::size_t size) {
    LargeMemory slab = allocate_large(size);
    if (slab == nullptr) throw std::bad_alloc();
    slabs_.push_back(std::move(slab));
    return slabs_.back().get();
  }

  std::size_t slab_bytes_;
  std::vector<LargeMemory> slabs_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

// Fetching memory before it is needed.

// Fetches bytes that will be read soon into the second-level cache, a piece at a time beside other work: all at
// once they would fill the queue of the work's own reads and writes.
class FetchAhead {
 public:
  // Fetches the first kMaxBytes bytes in at most `pieces` pieces.
  FetchAhead(std::span<const std::byte> bytes, std::int64_t pieces) noexcept
      : next_(bytes.data()), end_(bytes.data() + std::min(bytes.size(), kMaxBytes)) {
    const std::size_t lines = (static_cast<std::size_t>(end_ - next_) + kLine - 1) / kLine;
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(pieces, 1));
    piece_ = (lines + count - 1) / count * kLine;
  }

  void fetch_piece() noexcept {
    const std::byte* const end = next_ + std::min(piece_, static_cast<std::size_t>(end_ - next_));
    for (; next_ < end; next_ += kLine) __builtin_prefetch(next_, 0, 2);
    next_ = std::min(next_, end_);
  }

 private:
  static constexpr std::size_t kLine = 64, kMaxBytes = 4096;

  const std::byte* next_;
  const std::byte* end_;
  std::size_t piece_;
};

inline void prefetch(std::span<const std::byte> bytes) noexcept { FetchAhead(bytes, 1).fetch_piece(); }

}  // namespace headrace
