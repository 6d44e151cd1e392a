// Checks of fields and options for operations; each throws a ConfigError that says what is wrong.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/operations.h"
#include "headrace/pipeline/operations/machinery/definition.h"

namespace headrace {

// Returns the extent of the channel axis; of the last axis if the field is not an image; 1 for a scalar.
inline std::int64_t channels_of(const Field& field) noexcept {
  if (field.shape.rank() == 0) return 1;
  return layout_of(field) == ImageLayout::kChannelsFirst ? field.shape[0] : field.shape.back();
}

// Returns height and width after resizing the shorter side to `size`; the longer one is rounded down.
inline std::pair<std::int64_t, std::int64_t> shorter_side_to(std::int64_t size, std::int64_t height,
                                                             std::int64_t width) noexcept {
  return height <= width ? std::pair{size, size * width / height} : std::pair{size * height / width, size};
}

// Checks an operation before it is applied to a field.
class FieldChecks {
 public:
  FieldChecks(const OperationDefinition& operation, const Field& field) : operation_(operation), field_(field) {}

  [[noreturn]] void refuse(const std::string& why, const std::string& hint = {}) const;

  void want_decoded() const;
  // Requires that the layout is said where has_doubtful_layout(), unless the operation has a value for each entry
  // of the last axis, `values`, which says it.
  void want_layout(std::size_t values = 0) const;
  // Requires an image (H, W, C).
  void want_channels_last() const;
  void want_type(std::initializer_list<DType> types) const;  // u8, or u8 and f32
  // Checks a side of the result.
  void want_size(int size) const;
  void want_finite(std::span<const float> values) const;
  void want_finite(std::initializer_list<float> values) const {
    want_finite(std::span(values.begin(), values.size()));
  }
  void want_probability(float probability) const;
  // Checks the minimum and maximum area of windows, as parts of the image's, and their ratio of sides.
  void want_area_and_ratio(const std::array<float, 2>& area, const std::array<float, 2>& ratio) const;

 private:
  const OperationDefinition& operation_;
  const Field& field_;
};

// Maximum of result sides and padding widths: their squares stay below the maximum pixels of an image.
inline constexpr int kMaxSide = 1 << 14;

// Returns the field of the image resized to a square.
Field squared(const Field& image, int size);

}  // namespace headrace
