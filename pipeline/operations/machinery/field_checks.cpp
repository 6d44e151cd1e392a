#include "headrace/pipeline/operations/machinery/field_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"

namespace headrace {

void FieldChecks::refuse(const std::string& why, const std::string& hint) const {
  throw ConfigError(fmt::format("{} cannot be applied to field '{}' of {} {}: {}", operation_.describe(),
                                field_.name, to_string(field_.dtype), field_.shape.to_string(), why),
                    hint);
}

void FieldChecks::want_decoded() const {
  if (field_.encoding == Encoding::kImage) refuse("it is still encoded", "call decode() before map()");
}

void FieldChecks::want_layout(std::size_t values) const {
  if (!has_doubtful_layout(field_) || static_cast<std::int64_t>(values) == field_.shape[2]) return;
  refuse(
      "its shape is that of an image with the channels first, and nothing says where they are",
      "put layout_is(channels_first) or layout_is(channels_last) first in the chain; from_arrays() takes layout");
}

void FieldChecks::want_channels_last() const {
  want_decoded();
  if (field_.shape.rank() != 3) refuse("an image of shape (H, W, C) is needed");
  want_layout();
  if (layout_of(field_) != ImageLayout::kChannelsLast) {
    refuse("the channels come first", "put to_layout(channels_last) before it");
  }
}

void FieldChecks::want_type(std::initializer_list<DType> types) const {
  if (std::find(types.begin(), types.end(), field_.dtype) != types.end()) return;
  refuse(types.size() == 1 ? "uint8 is needed" : "uint8 or float32 is needed");
}

void FieldChecks::want_size(int size) const {
  if (size < 1) refuse(fmt::format("size {} is not positive", size));
  if (size > kMaxSide) refuse(fmt::format("size {} is above {}", size, kMaxSide));
}

void FieldChecks::want_finite(std::span<const float> values) const {
  for (const float value : values) {
    if (!std::isfinite(value)) refuse(fmt::format("{} is no finite number", value));
  }
}

void FieldChecks::want_probability(float probability) const {
  if (!(probability >= 0 && probability <= 1)) refuse("the probability is not within 0 and 1");
}

void FieldChecks::want_area_and_ratio(const std::array<float, 2>& area, const std::array<float, 2>& ratio) const {
  if (!(area[0] > 0 && area[0] <= area[1] && area[1] <= 1)) {
    refuse("area must satisfy 0 < minimum <= maximum <= 1");
  }
  if (!(ratio[0] > 0 && ratio[0] <= ratio[1] && std::isfinite(ratio[1]))) {
    refuse("ratio must satisfy 0 < minimum <= maximum < infinity");
  }
}

Field squared(const Field& image, int size) {
  Field square = image;
  square.shape = Shape{size, size, image.shape[2]};
  square.layout = ImageLayout::kChannelsLast;
  return square;
}

}  // namespace headrace
