// The innermost loops on pixels: one image of a batch row, read once and written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/operations/kernels/rgb_kernels.h"
#include "headrace/pipeline/operations/kernels/stores.h"

namespace headrace {

// Computes y = x * scale[c] + shift[c] in f32, then converts to the output's type.
struct ChannelScale {
  std::vector<float> scale, shift;                  // one per channel
  std::vector<float> pattern_scale, pattern_shift;  // repeated to kPattern elements, channels innermost

  // Number of floats after which 1, 2, 3 or 4 interleaved channels and 16 lanes align again.
  static constexpr std::int64_t kPattern = 48;

  ChannelScale() = default;
  ChannelScale(std::vector<float> scales, std::vector<float> shifts);
};

// A conversion of a rectangle of pixels. Element types are u8 or f32.
struct PixelWork {
  std::int64_t height = 0, width = 0, channels = 1;
  DType from_type = DType::kU8, to_type = DType::kU8;
  // Bytes from one element to the next, going down, right and to the next channel; `right` is negative and
  // `from` points to the last column for a mirrored image.
  const std::byte* from = nullptr;
  std::int64_t down = 0, right = 0, deeper = 0;
  std::byte* to = nullptr;  // without gaps, in `layout`
  ImageLayout layout = ImageLayout::kChannelsLast;
  const ChannelScale* scale = nullptr;  // nullptr: values are unchanged
  RgbBorder border = {};                // of the rectangle; empty unless takes_border()
  Traffic traffic = {};
};

void convert_pixels(const PixelWork& work);

// Returns whether it writes the zeros around such a picture itself; otherwise the caller draws them.
bool takes_border(const PixelWork& work) noexcept;

}  // namespace headrace
