// Moves the numbers of masks and boxes as an operation moves the pixels of their image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/devices/base/dtype.h"
#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {

struct MovedPixels {
  const std::byte* from = nullptr;  // (height, width) pixels without gaps
  std::int64_t height = 0, width = 0;
  std::size_t pixel_bytes = 1;
  ImageWindow window;     // of them, or beyond them
  bool reflects = false;  // beyond them: reflected, or else zeros
  bool mirrored = false;
  ImageSize size;  // of the result
  std::byte* to = nullptr;
};
// Resizes the window to the nearest pixel, mirrored: pixel i of n is that at floor(i m / n) of the window's m.
// REQUIRES: a window that reaches beyond the pixels and is reflected does so by less than their number.
void move_pixels(const MovedPixels& work);

// A box in pixels; it is there if its right is above its left and its bottom above its top.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};
// Returns the box number `index` of numbers f32, i32 or i64.
Box load_box(std::span<const std::byte> boxes, std::size_t index, DType type);
// Writes it as four f32, rounded to nearest.
void store_box(const Box& box, std::span<std::byte> boxes, std::size_t index);

}  // namespace headrace
