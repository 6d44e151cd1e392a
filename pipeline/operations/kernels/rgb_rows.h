// Parts of the RGB kernels for all processors: the rows of an image, and the parts of rows that fill no vector.
#pragma once

#include <cstdint>
#include <cstring>

#include "headrace/pipeline/operations/kernels/rgb_kernels.h"

namespace headrace {

// The rows of a rectangle with the zeros of its border.
class RgbRows {
 public:
  explicit RgbRows(const RgbImage& image) noexcept : image_(image), bordered_(!image.border.empty()) {}

  // Returns a row, valid until the next call.
  const std::uint8_t* row(std::int64_t y) noexcept {
    const RgbBorder& border = image_.border;
    const std::uint8_t* stored = image_.first + (y - border.above) * image_.stride;
    if (!bordered_) return stored;
    if (y < border.above || y >= image_.height - border.below) return kZeros;
    const auto bytes = [](std::int64_t pixels) { return static_cast<std::size_t>(3 * pixels); };
    const std::int64_t end = image_.width - border.right;
    std::memset(line_, 0, bytes(border.left));
    std::memcpy(line_ + bytes(border.left), stored, bytes(end - border.left));
    std::memset(line_ + bytes(end), 0, bytes(border.right));
    return line_;
  }

 private:
  static constexpr std::uint8_t kZeros[3 * kMaxBordered] = {};

  const RgbImage& image_;
  bool bordered_;
  std::uint8_t line_[3 * kMaxBordered];
};

// Converts columns [begin, end) of one row, counted as stored: the part that fills no vector.
inline void planes_part(const RgbImage& image, const std::uint8_t* from, std::int64_t y, std::int64_t begin,
                        std::int64_t end, const float* scale, const float* shift, float* to) {
  const std::int64_t plane = image.height * image.width;
  for (std::int64_t x = begin; x < end; ++x) {
    const std::int64_t at = image.direction == Direction::kMirrored ? image.width - 1 - x : x;
    for (int c = 0; c < 3; ++c) {
      to[c * plane + y * image.width + at] = static_cast<float>(from[3 * x + c]) * scale[c] + shift[c];
    }
  }
}

inline void pixels_part(const RgbImage& image, const std::uint8_t* from, std::int64_t y, std::int64_t begin,
                        std::int64_t end, const float* scale, const float* shift, float* to) {
  for (std::int64_t x = begin; x < end; ++x) {
    const std::int64_t at = image.direction == Direction::kMirrored ? image.width - 1 - x : x;
    for (int c = 0; c < 3; ++c) {
      to[3 * (y * image.width + at) + c] = static_cast<float>(from[3 * x + c]) * scale[c] + shift[c];
    }
  }
}

inline void mirror_part(const RgbImage& image, std::int64_t y, std::int64_t begin, std::int64_t end,
                        std::uint8_t* to) {
  const std::uint8_t* from = image.first + y * image.stride;
  for (std::int64_t x = begin; x < end; ++x) {
    for (int c = 0; c < 3; ++c) to[3 * (y * image.width + image.width - 1 - x) + c] = from[3 * x + c];
  }
}

}  // namespace headrace
