#include "headrace/pipeline/operations/kernels/warp_kernels.h"

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/simd.h"

namespace headrace {
namespace {

constexpr std::int32_t kWarpTile = 256;  // pixels of a row that are placed at a time
constexpr std::int32_t kWarpStep = 16;
constexpr int kWarpBits = 11;  // of a distance between two pixels
constexpr std::int32_t kWarpUnit = 1 << kWarpBits;
constexpr std::int32_t kBeyondImage = -1;

struct ImageExtent {
  std::int32_t height = 0, width = 0;
};

[[gnu::always_inline]] inline std::int32_t rounded_down(double value) {
  const auto whole = static_cast<std::int32_t>(value);
  return whole - static_cast<std::int32_t>(value < static_cast<double>(whole));
}

[[gnu::always_inline]] inline double bounded(double value, double low, double high) {
  const auto raised = value < low ? low : value;  // not std::max(), a function of the baseline's instructions
  return high < raised ? high : raised;
}

// Finds the pixel of the image for each of `count` pixels of row y, from column `begin`; kBeyondImage: none.
HEADRACE_SIMD_MATH void place_nearest(const AffineMap& source, const ImageExtent& image, std::int32_t y,
                                      std::int32_t begin, std::int32_t count, std::int32_t* __restrict pixels) {
  const double xx = source.xx, yx = source.yx, middle = y + 0.5;
  const double x0 = source.xy * middle + source.x0, y0 = source.yy * middle + source.y0;
  const std::int32_t width = image.width, height = image.height;
  for (std::int32_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(begin + i) + 0.5;
    const std::int32_t column = rounded_down(bounded(xx * x + x0, -1, width));
    const std::int32_t row = rounded_down(bounded(yx * x + y0, -1, height));
    const bool inside = (column >= 0) & (column < width) & (row >= 0) & (row < height);
    pixels[i] = inside ? row * width + column : kBeyondImage;
  }
}

// Where a tile's pixels come from: the pixel left of and above the point, which may lie outside, and the point's
// distance from its middle.
struct PlacedTile {
  std::int32_t column[kWarpTile], row[kWarpTile];
  std::int32_t right[kWarpTile], down[kWarpTile];
};

HEADRACE_SIMD_MATH void place_between(const AffineMap& source, const ImageExtent& image, std::int32_t y,
                                      std::int32_t begin, std::int32_t count, PlacedTile& tile) {
  const double xx = source.xx, yx = source.yx, middle = y + 0.5;
  const double x0 = source.xy * middle + source.x0 - 0.5, y0 = source.yy * middle + source.y0 - 0.5;
  for (std::int32_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(begin + i) + 0.5;
    const double at_x = bounded(xx * x + x0, -2, image.width), at_y = bounded(yx * x + y0, -2, image.height);
    tile.column[i] = rounded_down(at_x);
    tile.row[i] = rounded_down(at_y);
    tile.right[i] = static_cast<std::int32_t>((at_x - tile.column[i]) * kWarpUnit + 0.5);
    tile.down[i] = static_cast<std::int32_t>((at_y - tile.row[i]) * kWarpUnit + 0.5);
  }
}

// The four pixels around each point, their channels in the bytes of a number.
struct CornerTile {
  std::uint32_t above_left[kWarpTile], above_right[kWarpTile], below_left[kWarpTile], below_right[kWarpTile];
};

template <int kChannels>
[[gnu::always_inline]] inline std::uint32_t load_pixel(const std::byte* from) {
  if constexpr (kChannels == 3) {
    std::uint16_t two = 0;
    std::memcpy(&two, from, 2);
    return two | std::to_integer<std::uint32_t>(from[2]) << 16;
  } else {
    std::uint32_t pixel = 0;
    std::memcpy(&pixel, from, kChannels);
    return pixel;
  }
}

template <int kChannels>
void gather_corners(const WarpWork& work, const PlacedTile& tile, std::int32_t count, CornerTile& corners) {
  const std::uint32_t fill = load_pixel<kChannels>(work.fill);
  const std::int64_t row_bytes = work.width * kChannels;
  const auto corner = [&](std::int64_t row, std::int64_t column) {
    const bool inside = row >= 0 && row < work.height && column >= 0 && column < work.width;
    return inside ? load_pixel<kChannels>(work.from + row * row_bytes + column * kChannels) : fill;
  };
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t row = tile.row[i], column = tile.column[i];
    if (row >= 0 && row + 1 < work.height && column >= 0 && column + 1 < work.width) {
      const std::byte* const from = work.from + row * row_bytes + column * kChannels;
      corners.above_left[i] = load_pixel<kChannels>(from);
      corners.above_right[i] = load_pixel<kChannels>(from + kChannels);
      corners.below_left[i] = load_pixel<kChannels>(from + row_bytes);
      corners.below_right[i] = load_pixel<kChannels>(from + row_bytes + kChannels);
    } else {
      corners.above_left[i] = corner(row, column);
      corners.above_right[i] = corner(row, column + 1);
      corners.below_left[i] = corner(row + 1, column);
      corners.below_right[i] = corner(row + 1, column + 1);
    }
  }
}

// Blends `count` pixels, rounded up to a multiple of kWarpStep.
HEADRACE_SIMD_MATH void blend_corners(const CornerTile& corners, const PlacedTile& tile, int channels,
                                      std::int32_t count, std::uint32_t* __restrict pixels) {
  const std::int32_t blended = (count + kWarpStep - 1) / kWarpStep * kWarpStep;
  for (std::int32_t i = 0; i < blended; ++i) pixels[i] = 0;
  for (int bits = 0; bits < 8 * channels; bits += 8) {
    for (std::int32_t i = 0; i < blended; ++i) {
      const auto above_left = static_cast<std::int32_t>(corners.above_left[i] >> bits & 255);
      const auto above_right = static_cast<std::int32_t>(corners.above_right[i] >> bits & 255);
      const auto below_left = static_cast<std::int32_t>(corners.below_left[i] >> bits & 255);
      const auto below_right = static_cast<std::int32_t>(corners.below_right[i] >> bits & 255);
      const std::int32_t right = tile.right[i], down = tile.down[i];
      const std::int32_t above = above_left * (kWarpUnit - right) + above_right * right;
      const std::int32_t below = below_left * (kWarpUnit - right) + below_right * right;
      const std::int32_t sum = above * (kWarpUnit - down) + below * down + (1 << (2 * kWarpBits - 1));
      pixels[i] |= static_cast<std::uint32_t>(sum >> (2 * kWarpBits)) << bits;
    }
  }
}

template <int kChannels>
void warp_levels(const WarpWork& work) {
  const ImageExtent image{.height = static_cast<std::int32_t>(work.height),
                          .width = static_cast<std::int32_t>(work.width)};
  PlacedTile tile{};
  CornerTile corners{};
  std::uint32_t pixels[kWarpTile];
  std::byte* to = work.to;
  for (std::int32_t y = 0; y < image.height; ++y) {
    for (std::int32_t x = 0; x < image.width; x += kWarpTile) {
      const std::int32_t count = std::min(kWarpTile, image.width - x);
      place_between(work.source, image, y, x, count, tile);
      gather_corners<kChannels>(work, tile, count, corners);
      blend_corners(corners, tile, kChannels, count, pixels);
      for (std::int32_t i = 0; i < count; ++i, to += kChannels) std::memcpy(to, &pixels[i], kChannels);
    }
  }
}

template <std::size_t kBytes>
void take_pixels(const WarpWork& work, const std::int32_t* pixels, std::int32_t count, std::byte* to) {
  for (std::int32_t i = 0; i < count; ++i, to += kBytes) {
    std::memcpy(to, pixels[i] == kBeyondImage ? work.fill : work.from + pixels[i] * std::int64_t{kBytes}, kBytes);
  }
}

void take_wide_pixels(const WarpWork& work, const std::int32_t* pixels, std::int32_t count, std::byte* to) {
  const auto bytes = static_cast<std::int64_t>(work.pixel_bytes);
  for (std::int32_t i = 0; i < count; ++i, to += bytes) {
    std::memcpy(to, pixels[i] == kBeyondImage ? work.fill : work.from + pixels[i] * bytes, work.pixel_bytes);
  }
}

}  // namespace

void warp_nearest(const WarpWork& work) {
  const ImageExtent image{.height = static_cast<std::int32_t>(work.height),
                          .width = static_cast<std::int32_t>(work.width)};
  std::int32_t pixels[kWarpTile];
  std::byte* to = work.to;
  for (std::int32_t y = 0; y < image.height; ++y) {
    for (std::int32_t x = 0; x < image.width; x += kWarpTile) {
      const std::int32_t count = std::min(kWarpTile, image.width - x);
      place_nearest(work.source, image, y, x, count, pixels);
      switch (work.pixel_bytes) {
        case 1: take_pixels<1>(work, pixels, count, to); break;
        case 3: take_pixels<3>(work, pixels, count, to); break;
        case 4: take_pixels<4>(work, pixels, count, to); break;
        case 8: take_pixels<8>(work, pixels, count, to); break;
        default: take_wide_pixels(work, pixels, count, to);
      }
      to += static_cast<std::size_t>(count) * work.pixel_bytes;
    }
  }
}

void warp_bilinear(const WarpWork& work) {
  switch (work.pixel_bytes) {
    case 1: return warp_levels<1>(work);
    case 2: return warp_levels<2>(work);
    case 3: return warp_levels<3>(work);
    default: return warp_levels<4>(work);
  }
}

}  // namespace headrace
