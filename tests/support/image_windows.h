// Parts of an image, to compare with the same parts of the whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/decoders/image_size.h"

namespace headrace::test {

// RGB, row by row.
inline std::vector<std::uint8_t> crop_pixels(const std::vector<std::uint8_t>& whole, const ImageSize& size,
                                             const ImageWindow& window) {
  std::vector<std::uint8_t> part;
  for (std::int64_t row = window.top; row < window.top + window.height; ++row) {
    const auto from = whole.begin() + (row * size.width + window.left) * 3;
    part.insert(part.end(), from, from + window.width * 3);
  }
  return part;
}

// The first rows, the last ones, a part in the midst, all.
inline std::vector<ImageWindow> windows_of(const ImageSize& size) {
  const std::int64_t high = std::max<std::int64_t>(size.height / 5, 1),
                     wide = std::max<std::int64_t>(size.width / 3, 1);
  return {{.height = high, .width = wide},
          {.top = size.height - high, .left = size.width - wide, .height = high, .width = wide},
          {.top = size.height / 3, .left = size.width / 3, .height = high, .width = wide},
          {.height = size.height, .width = size.width}};
}

// The index that decoding a window makes; null of images that are bad, or have none.
inline std::unique_ptr<const JpegIndex> index_of(ImageDecoder& decoder, std::span<const std::byte> encoded) {
  std::unique_ptr<const JpegIndex> index;
  std::vector<std::uint8_t> pixel(3);
  try {
    decoder.decode_window(encoded, {.height = 1, .width = 1}, pixel, &index);
  } catch (const Error&) {
  }
  return index;
}

}  // namespace headrace::test
