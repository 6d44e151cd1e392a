#include "headrace/pipeline/operations/kernels/color_kernels.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "headrace/devices/base/simd.h"

namespace headrace {
namespace {

// Pixels processed at a time, as floats, one plane per colour: they stay in the first-level cache.
constexpr std::int64_t kTile = 256;

struct Tile {
  float red[kTile], green[kTile], blue[kTile];
};

// A change with its number: a factor, the turn in sixths of the circle, or for contrast the mean luma.
struct TileChange {
  ColorProperty property = ColorProperty::kBrightness;
  float amount = 1;
  float mean = 0;
};

[[gnu::always_inline]] inline float clamped(float value) { return std::min(std::max(value, 0.0F), 255.0F); }
[[gnu::always_inline]] inline float luma(float red, float green, float blue) {
  return 0.299F * red + 0.587F * green + 0.114F * blue;
}

[[gnu::always_inline]] inline void load_tile(const std::uint8_t* from, std::int64_t pixels, Tile& tile) {
  std::uint8_t bytes[3 * kTile] = {};
  std::memcpy(bytes, from, static_cast<std::size_t>(3 * pixels));
  for (std::int64_t i = 0; i < kTile; ++i) {
    tile.red[i] = static_cast<float>(bytes[3 * i]);
    tile.green[i] = static_cast<float>(bytes[3 * i + 1]);
    tile.blue[i] = static_cast<float>(bytes[3 * i + 2]);
  }
}

[[gnu::always_inline]] inline void store(const Tile& tile, std::int64_t pixels, std::uint8_t* to) {
  std::uint8_t bytes[3 * kTile];
  for (std::int64_t i = 0; i < kTile; ++i) {
    bytes[3 * i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(tile.red[i] + 0.5F));
    bytes[3 * i + 1] = static_cast<std::uint8_t>(static_cast<std::int32_t>(tile.green[i] + 0.5F));
    bytes[3 * i + 2] = static_cast<std::uint8_t>(static_cast<std::int32_t>(tile.blue[i] + 0.5F));
  }
  std::memcpy(to, bytes, static_cast<std::size_t>(3 * pixels));
}

[[gnu::always_inline]] inline void brighten(Tile& tile, float factor) {
  for (std::int64_t i = 0; i < kTile; ++i) {
    tile.red[i] = clamped(tile.red[i] * factor);
    tile.green[i] = clamped(tile.green[i] * factor);
    tile.blue[i] = clamped(tile.blue[i] * factor);
  }
}

[[gnu::always_inline]] inline void spread(Tile& tile, float factor, float mean) {
  for (std::int64_t i = 0; i < kTile; ++i) {
    tile.red[i] = clamped(mean + (tile.red[i] - mean) * factor);
    tile.green[i] = clamped(mean + (tile.green[i] - mean) * factor);
    tile.blue[i] = clamped(mean + (tile.blue[i] - mean) * factor);
  }
}

[[gnu::always_inline]] inline void change_saturation(Tile& tile, float factor) {
  for (std::int64_t i = 0; i < kTile; ++i) {
    const float grey = luma(tile.red[i], tile.green[i], tile.blue[i]);
    tile.red[i] = clamped(grey + (tile.red[i] - grey) * factor);
    tile.green[i] = clamped(grey + (tile.green[i] - grey) * factor);
    tile.blue[i] = clamped(grey + (tile.blue[i] - grey) * factor);
  }
}

// Returns how far a colour is below the largest one, in parts of the chroma, `sixths` from where it is largest:
// hue 0 is red, and red falls from one sixth on and is up again at five.
[[gnu::always_inline]] inline float below_largest(float sixths) {
  const float turned = sixths - 6.0F * static_cast<float>(static_cast<std::int32_t>(sixths * (1.0F / 6)));
  return std::min(std::max(std::min(turned, 4.0F - turned), 0.0F), 1.0F);
}

[[gnu::always_inline]] inline void turn_hue(Tile& tile, float sixths) {
  for (std::int64_t i = 0; i < kTile; ++i) {
    const float red = tile.red[i], green = tile.green[i], blue = tile.blue[i];
    const float largest = std::max(std::max(red, green), blue);
    const float chroma = largest - std::min(std::min(red, green), blue);
    const float part = 1.0F / (chroma > 0 ? chroma : 1.0F);
    const float of_red = (green - blue) * part;
    const float of_green = 2.0F + (blue - red) * part;
    const float of_blue = 4.0F + (red - green) * part;
    // Adds six, so that nothing below is negative.
    const float hue = 6.0F + sixths + (largest == red ? of_red : largest == green ? of_green : of_blue);
    tile.red[i] = clamped(largest - chroma * below_largest(hue + 5.0F));
    tile.green[i] = clamped(largest - chroma * below_largest(hue + 3.0F));
    tile.blue[i] = clamped(largest - chroma * below_largest(hue + 1.0F));
  }
}

[[gnu::always_inline]] inline void apply(const TileChange* changes, std::size_t count, Tile& tile) {
  for (std::size_t i = 0; i < count; ++i) {
    switch (changes[i].property) {
      case ColorProperty::kBrightness: brighten(tile, changes[i].amount); break;
      case ColorProperty::kContrast: spread(tile, changes[i].amount, changes[i].mean); break;
      case ColorProperty::kSaturation: change_saturation(tile, changes[i].amount); break;
      case ColorProperty::kHue: turn_hue(tile, changes[i].amount); break;
    }
  }
}

// Returns the sum of the pixels' luma after the changes, in 1/256: integers, so the order of adding is irrelevant.
HEADRACE_SIMD std::int64_t luma_sum(const std::uint8_t* from, std::int64_t pixels, const TileChange* changes,
                                    std::size_t count) {
  std::int64_t sum = 0;
  Tile tile;
  for (std::int64_t at = 0; at < pixels; at += kTile) {
    const std::int64_t here = std::min(kTile, pixels - at);
    load_tile(from + 3 * at, here, tile);
    apply(changes, count, tile);
    std::int32_t part = 0;
    for (std::int64_t i = 0; i < here; ++i) {
      part += static_cast<std::int32_t>(luma(tile.red[i], tile.green[i], tile.blue[i]) * 256.0F + 0.5F);
    }
    sum += part;
  }
  return sum;
}

HEADRACE_SIMD void change_pixels(const std::uint8_t* from, std::int64_t pixels, const TileChange* changes,
                                 std::size_t count, std::uint8_t* to) {
  Tile tile;
  for (std::int64_t at = 0; at < pixels; at += kTile) {
    const std::int64_t here = std::min(kTile, pixels - at);
    load_tile(from + 3 * at, here, tile);
    apply(changes, count, tile);
    store(tile, here, to + 3 * at);
  }
}

float factor(float range, Philox& random) {
  const float low = std::max(0.0F, 1 - range), high = 1 + range;
  return low + (high - low) * random.uniform();
}

}  // namespace

ColorPlan draw_colors(const ColorJitter& options, Philox& random) {
  std::array<ColorProperty, 4> order = {ColorProperty::kBrightness, ColorProperty::kContrast,
                                        ColorProperty::kSaturation, ColorProperty::kHue};
  for (std::uint32_t last = 3; last > 0; --last) std::swap(order[last], order[random.below(last + 1)]);
  const std::array<float, 4> ranges = {options.brightness, options.contrast, options.saturation, options.hue};
  std::array<float, 4> amounts{};
  for (std::size_t i = 0; i < 3; ++i) amounts[i] = factor(ranges[i], random);
  amounts[3] = options.hue * (2 * random.uniform() - 1);
  ColorPlan plan;
  for (const ColorProperty property : order) {
    const auto at = static_cast<std::size_t>(property);
    if (ranges[at] > 0) plan.changes[plan.count++] = {.property = property, .amount = amounts[at]};
  }
  return plan;
}

void change_colors(const ColorPlan& plan, const std::uint8_t* from, std::int64_t pixels, std::uint8_t* to) {
  std::array<TileChange, 4> changes;
  for (std::size_t i = 0; i < plan.count; ++i) {
    const ColorChange& change = plan.changes[i];
    changes[i] = {.property = change.property,
                  .amount = change.property == ColorProperty::kHue ? 6 * change.amount : change.amount};
    if (change.property != ColorProperty::kContrast) continue;
    const auto sum = static_cast<double>(luma_sum(from, pixels, changes.data(), i));
    changes[i].mean = static_cast<float>(sum / (256.0 * static_cast<double>(pixels)));
  }
  change_pixels(from, pixels, changes.data(), plan.count, to);
}

}  // namespace headrace
