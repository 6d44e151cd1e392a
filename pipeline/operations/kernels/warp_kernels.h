// Draws an image whose pixels come from other places of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/pipeline/operations/kernels/affine_map.h"

namespace headrace {

struct WarpWork {
  const std::byte* from = nullptr;  // (height, width) pixels without gaps
  std::int64_t height = 0, width = 0;
  std::size_t pixel_bytes = 1;
  AffineMap source;                 // from a point of the result to one of the image
  const std::byte* fill = nullptr;  // a pixel: what is beyond the image
  std::byte* to = nullptr;          // as many pixels
};

// Takes for each pixel the one that its middle comes from.
void warp_nearest(const WarpWork& work);

// Blends the four pixels around the point that its middle comes from, in 11 bits of their distances: within one
// level of exact arithmetic. REQUIRES: pixels of one to four u8 channels.
void warp_bilinear(const WarpWork& work);

}  // namespace headrace
