// Draws and applies changes of colour. For their meaning see ColorJitter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/operations.h"

namespace headrace {

enum class ColorProperty { kBrightness, kContrast, kSaturation, kHue };

// A change of one property: by a factor, or, for the hue, by a part of the circle.
struct ColorChange {
  ColorProperty property = ColorProperty::kBrightness;
  float amount = 1;
};

struct ColorPlan {
  std::array<ColorChange, 4> changes;  // the first `count`, in order of application
  std::size_t count = 0;
};

// Draws the order (three numbers, one exchange each from the last place down), then the amounts of brightness,
// contrast, saturation and hue, used or not. A property with range 0 is left out.
ColorPlan draw_colors(const ColorJitter& options, Philox& random);

// Changes interleaved RGB pixels. REQUIRES: `to` does not overlap `from`.
void change_colors(const ColorPlan& plan, const std::uint8_t* from, std::int64_t pixels, std::uint8_t* to);

}  // namespace headrace
