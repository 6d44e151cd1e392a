// Changes of colour, drawn and done. See ColorJitter for what they mean.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

enum class ColorProperty { kBrightness, kContrast, kSaturation, kHue };

// One property changed: by a factor, or of the hue turned by a part of the circle.
struct ColorChange {
  ColorProperty property = ColorProperty::kBrightness;
  float amount = 1;
};

struct ColorPlan {
  std::array<ColorChange, 4> changes;  // the first `count`, in the order they are done
  std::size_t count = 0;
};

// Draws the order (three numbers, an exchange each from the last place down), then the amounts of brightness,
// contrast, saturation and hue, whether they are used or not. A property with range 0 is left out.
ColorPlan draw_colors(const ColorJitter& options, Philox& random);

// RGB pixels, interleaved; `to` may not overlap `from`.
void change_colors(const ColorPlan& plan, const std::uint8_t* from, std::int64_t pixels, std::uint8_t* to);

}  // namespace headrace
