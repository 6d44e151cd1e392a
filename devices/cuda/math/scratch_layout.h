// The layout of a call's temporary tensors in one block of scratch memory. Private to the CUDA backend.
#pragma once

#include <cstddef>

namespace headrace::cuda {

// Adds up pieces; each begins at a multiple of 256 bytes, like cudaMalloc's blocks.
class ScratchLayout {
 public:
  // Adds a piece of `bytes` and returns its offset.
  constexpr std::size_t add(std::size_t bytes) noexcept {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  constexpr std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 256;

  std::size_t bytes_ = 0;
};

}  // namespace headrace::cuda
