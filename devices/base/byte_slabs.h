// Memory handed out piece by piece and freed together: many small pieces without an allocation each.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/base/memory.h"

namespace headrace {

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

}  // namespace headrace
