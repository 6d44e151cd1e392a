// What operations ask of a field and of their options: each throws the ConfigError that says what is wrong.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/operations/machinery/definition.h"

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

// An operation that is about to be applied to a field.
class FieldChecks {
 public:
  FieldChecks(const OperationDefinition& operation, const Field& field) : operation_(operation), field_(field) {}

  [[noreturn]] void refuse(const std::string& why, const std::string& hint = {}) const;

  void want_decoded() const;
  // An image (H, W, C).
  void want_channels_last() const;
  void want_type(std::initializer_list<DType> types) const;  // u8, or u8 and f32
  // Of a side of the result.
  void want_size(int size) const;
  void want_finite(const std::vector<float>& values) const;
  void want_probability(float probability) const;

 private:
  const OperationDefinition& operation_;
  const Field& field_;
};

// Sides of results and widths of padding: their squares stay below the pixels an image may have.
inline constexpr int kMaxSide = 1 << 14;

// The image after it became a square.
Field squared(const Field& image, int size);

}  // namespace headrace
