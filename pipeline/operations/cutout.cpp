#include "headrace/pipeline/operations/cutout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

class CutoutDefinition final : public DataOperation<Cutout> {
 public:
  using DataOperation::DataOperation;

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    want_hole(checks, before, options_.fill);
    checks.want_size(options_.size);
    return before;
  }

  bool join(PixelPass& pass, const OperationPlace& place) const override {
    if (!pass.abilities.cuts) return false;
    pass.holes.push_back({.options = options_, .number = place.number});
    return true;
  }
};

template <typename T>
T to_element(float value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return static_cast<std::uint8_t>(std::nearbyint(value));
  } else {
    return value;
  }
}

template <typename T>
void fill(const PixelTarget& image, const ImageWindow& hole, const std::vector<float>& values) {
  T* const data = reinterpret_cast<T*>(image.data);
  const std::int64_t bottom = hole.top + hole.height, right = hole.left + hole.width;
  const auto value_of = [&](std::int64_t channel) {
    return to_element<T>(values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
  };
  if (image.layout == ImageLayout::kChannelsFirst) {
    for (std::int64_t c = 0; c < image.channels; ++c) {
      for (std::int64_t y = hole.top; y < bottom; ++y) {
        T* row = data + (c * image.height + y) * image.width;
        std::fill(row + hole.left, row + right, value_of(c));
      }
    }
    return;
  }
  for (std::int64_t y = hole.top; y < bottom; ++y) {
    T* row = data + y * image.width * image.channels;
    if (values.size() == 1) {
      std::fill(row + hole.left * image.channels, row + right * image.channels, value_of(0));
      continue;
    }
    for (std::int64_t x = hole.left; x < right; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) row[x * image.channels + c] = value_of(c);
    }
  }
}

}  // namespace

OperationPtr define(Cutout options) { return std::make_shared<CutoutDefinition>(std::move(options)); }

Operations cutout(int size, std::vector<float> fill) {
  return Operation{Cutout{.size = size, .fill = std::move(fill)}};
}

ImageWindow draw_hole(const Cutout& options, const ImageSize& image, Philox& random) {
  const std::int64_t y = random.below(static_cast<std::uint32_t>(image.height));
  const std::int64_t x = random.below(static_cast<std::uint32_t>(image.width));
  const std::int64_t top = y - options.size / 2, left = x - options.size / 2;
  ImageWindow hole{.top = std::max<std::int64_t>(0, top), .left = std::max<std::int64_t>(0, left)};
  hole.height = std::min(image.height, top + options.size) - hole.top;
  hole.width = std::min(image.width, left + options.size) - hole.left;
  return hole;
}

void fill_window(const PixelTarget& image, const ImageWindow& window, const std::vector<float>& values) {
  if (image.type == DType::kU8) {
    fill<std::uint8_t>(image, window, values);
  } else {
    fill<float>(image, window, values);
  }
}

void want_hole(const FieldChecks& checks, const Field& image, const std::vector<float>& values) {
  checks.want_decoded();
  if (image.shape.rank() != 3) checks.refuse("an image of three axes is needed", "cut out before flatten()");
  checks.want_layout(values.size());
  checks.want_type({DType::kU8, DType::kF32});
  checks.want_finite(values);
  const auto count = static_cast<std::int64_t>(values.size());
  if (count != 1 && count != channels_of(image)) {
    checks.refuse(fmt::format("{} values for {} channels", count, channels_of(image)));
  }
  for (const float value : values) {
    if (image.dtype == DType::kU8 && (value < 0 || value > 255)) {
      checks.refuse("the value is not within 0 and 255");
    }
  }
}

}  // namespace headrace
