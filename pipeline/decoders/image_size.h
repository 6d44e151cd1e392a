// Extents of an image and of a rectangle within it.
#pragma once

#include <cstdint>

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

}  // namespace headrace
