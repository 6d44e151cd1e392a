// How the three axes of an image are read, and what a resize makes of them.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

// The channel axis is the shorter of first and last; a dynamic extent counts as long, a tie as channels-last.
inline ImageLayout layout_of(const Shape& shape) noexcept {
  if (shape.rank() != 3) return ImageLayout::kChannelsLast;
  const auto length = [&](int axis) {
    return shape[axis] == Shape::kDynamic ? std::numeric_limits<std::int64_t>::max() : shape[axis];
  };
  return length(0) < length(2) ? ImageLayout::kChannelsFirst : ImageLayout::kChannelsLast;
}

// Extent of the channel axis; of the last axis where the shape is no image; 1 for a scalar.
inline std::int64_t channels_of(const Shape& shape) noexcept {
  if (shape.rank() == 0) return 1;
  return layout_of(shape) == ImageLayout::kChannelsFirst ? shape[0] : shape.back();
}

// Height and width after the shorter side became `size`; the longer one is rounded down.
inline std::pair<std::int64_t, std::int64_t> shorter_side_to(std::int64_t size, std::int64_t height,
                                                             std::int64_t width) noexcept {
  return height <= width ? std::pair{size, size * width / height} : std::pair{size * height / width, size};
}

}  // namespace headrace
