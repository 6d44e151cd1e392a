// Draws an image with a border around it into a thread's canvas.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/pipeline/operations.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// A border of `pixels` on each side.
struct ImageBorder {
  std::int64_t pixels = 0;
  Padding padding = Padding::kZero;
};

// An image of (height, width) pixels of `pixel_bytes`, without gaps.
struct CanvasImage {
  const std::byte* data = nullptr;
  std::int64_t height = 0, width = 0, pixel_bytes = 0;
};

// Returns the bytes of a canvas with a border of `pad` pixels around the image.
std::size_t canvas_bytes(const CanvasImage& image, std::int64_t pad) noexcept;

// Draws the rows [top, top + rows) of the image with its border, row 0 being the first row of the border. A zero
// border is reused for images of the same size.
void draw_on_canvas(Canvas& canvas, const CanvasImage& image, const ImageBorder& border, std::int64_t top,
                    std::int64_t rows);

}  // namespace headrace
