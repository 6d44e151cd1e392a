// Extents of an image and of a rectangle within it, with their checks for all decoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

// A rectangle of pixels within an image.
struct ImageWindow {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const ImageWindow&) const = default;
};

// Checks that every decoder makes of an image and of its output.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

inline void check_pixels(std::int64_t height, std::int64_t width) {
  if (height > 0 && width > 0 && height <= kMaxPixels / width) return;
  throw Error(ErrorCode::kDataCorrupt, "an image of " + std::to_string(height) + " x " + std::to_string(width) +
                                           " pixels, the maximum is 2^28");
}

// Throws ConfigError unless the window lies within the image and `bytes` is its size.
inline void check_window(const ImageSize& image, const ImageWindow& window, std::size_t bytes) {
  const bool inside = window.top >= 0 && window.left >= 0 && window.height > 0 && window.width > 0 &&
                      window.height <= image.height && window.top <= image.height - window.height &&
                      window.width <= image.width && window.left <= image.width - window.width;
  if (!inside || bytes != static_cast<std::size_t>(window.height * window.width) * 3) {
    throw ConfigError("a window of " + std::to_string(window.height) + " x " + std::to_string(window.width) +
                          " at (" + std::to_string(window.top) + ", " + std::to_string(window.left) + ") into " +
                          std::to_string(bytes) + " bytes, of an image of " + std::to_string(image.height) +
                          " x " + std::to_string(image.width),
                      "a window lies within the image and takes height * width * 3 bytes");
  }
}

}  // namespace headrace
