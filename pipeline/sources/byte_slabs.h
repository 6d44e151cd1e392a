// Memory given out piece by piece and freed together: many small files without an allocation each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace headrace {

// Pieces stay where they are while it lives, moved or not. Not thread-safe.
class ByteSlabs {
 public:
  // Uninitialised. Throws std::bad_alloc.
  std::span<std::byte> allocate(std::size_t size) {
    if (size > kSlabBytes / 8) return {add(size), size};
    if (size > left_) {
      next_ = add(kSlabBytes);
      left_ = kSlabBytes;
    }
    const std::span<std::byte> piece(next_, size);
    next_ += size;
    left_ -= size;
    return piece;
  }

 private:
  static constexpr std::size_t kSlabBytes = std::size_t{1} << 20;

  std::byte* add(std::size_t size) {
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    return slabs_.back().get();
  }

  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace headrace
