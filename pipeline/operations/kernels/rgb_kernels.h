// Kernels on rows of interleaved u8 pixels of three channels, in variants for different processors. All variants
// give the same bits: f32 results are x * scale + shift, rounded after each operation.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/pipeline/operations/kernels/stores.h"

namespace headrace {

enum class Direction { kAsStored, kMirrored };  // left to right, or right to left

// Rows and columns at the edges of a rectangle, as stored, that lie outside of the picture: zeros.
struct RgbBorder {
  std::int64_t above = 0, below = 0, left = 0, right = 0;

  bool empty() const noexcept { return above == 0 && below == 0 && left == 0 && right == 0; }
};

// A rectangle of a picture. `first` is the leftmost pixel as stored, in both directions, of the first row within
// the picture.
struct RgbImage {
  const std::uint8_t* first = nullptr;
  std::int64_t stride = 0;  // bytes from row to row
  std::int64_t height = 0, width = 0;
  Direction direction = Direction::kAsStored;
  RgbBorder border = {};  // for a rectangle at most kMaxBordered wide
};
inline constexpr std::int64_t kMaxBordered = 512;

// Callers who request non-temporal stores must call finish() before others may read.
struct RgbKernels {
  // Converts (H, W, 3) u8 to (3, H, W) f32; `scale` and `shift` have one entry per channel.
  void (*to_planes)(const RgbImage&, const float* scale, const float* shift, const Traffic&, float* to);
  // Converts (H, W, 3) u8 to (H, W, 3) f32; `scale` and `shift` repeat their three entries up to 48.
  void (*to_pixels)(const RgbImage&, const float* scale, const float* shift, const Traffic&, float* to);
  // Mirrors (H, W, 3) u8 without a border, regardless of the direction.
  void (*mirror)(const RgbImage&, std::uint8_t* to);
};

// Returns the kernels that this processor can run, the best first, the portable ones last.
std::span<const RgbKernels> runnable_rgb_kernels();
// Returns the best kernels for this processor.
const RgbKernels& rgb_kernels() noexcept;
// Returns the portable kernels: the oracle of the others.
const RgbKernels& portable_rgb_kernels() noexcept;

}  // namespace headrace
