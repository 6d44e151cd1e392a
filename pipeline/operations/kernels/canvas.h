// Draws an image with a border around it into a thread's canvas.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// (height, width) pixels of `pixel_bytes`, without gaps.
struct CanvasImage {
  const std::byte* data = nullptr;
  std::int64_t height = 0, width = 0, pixel_bytes = 0;
};

// Afterwards the rows [top, top + options.size) of the padded image are on the canvas, its row 0 being the
// first row of padding. A zero border is kept from image to image of the same size.
void draw_on_canvas(Canvas& canvas, const CanvasImage& image, const PadCrop& options, std::int64_t top);

}  // namespace headrace
