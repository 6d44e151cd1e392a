// Sets a rectangle of an image to a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"

namespace headrace {

// A finished image without gaps, u8 or f32.
struct PixelTarget {
  std::byte* data = nullptr;
  std::int64_t height = 0, width = 0, channels = 1;
  DType type = DType::kU8;
  ImageLayout layout = ImageLayout::kChannelsLast;
};

// Draws a square's middle: its row, then its column; for an even size the pixel below and right of it. Returns the
// part within the image.
ImageWindow draw_hole(const Cutout& options, const ImageSize& image, Philox& random);
// Draws whether to erase, then up to ten areas and ratios, then the top and the left of what fits. Returns an
// empty window if nothing is to be erased.
ImageWindow draw_hole(const RandomErasing& options, const ImageSize& image, Philox& random);

// Sets the window, which lies within the image, to one value or one per channel.
void fill_window(const PixelTarget& image, const ImageWindow& window, const std::vector<float>& values);

// Refuses a field that is no image, and values that its elements cannot have.
void want_hole(const FieldChecks& checks, const Field& image, const std::vector<float>& values);

}  // namespace headrace
