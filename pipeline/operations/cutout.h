// Sets a square of an image to a value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

// A finished image without gaps, u8 or f32.
struct PixelTarget {
  std::byte* data = nullptr;
  std::int64_t height = 0, width = 0, channels = 1;
  DType type = DType::kU8;
  ImageLayout layout = ImageLayout::kChannelsLast;
};

// Cuts out a square, drawing its middle's row, then column: for an even size the pixel below and right of it.
void cut_out(const Cutout& options, const PixelTarget& image, Philox& random);

}  // namespace headrace
