// The orientation in an image's EXIF data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {

// EXIF's tag 0x0112: the side at which the first row and the first column of the stored pixels are shown.
enum class Orientation : std::uint8_t {
  kTopLeft = 1,  // as stored
  kTopRight,     // mirrored
  kBottomRight,  // half a turn
  kBottomLeft,   // upside down, mirrored
  kLeftTop,      // transposed
  kRightTop,     // a quarter turn clockwise
  kRightBottom,  // transposed across the other diagonal
  kLeftBottom,   // a quarter turn counter-clockwise
};

// Returns the orientation of a JPEG by its first EXIF segment, of a PNG by its eXIf chunk; kTopLeft if it has no
// valid one. XMP is ignored. Never fails.
Orientation exif_orientation(std::span<const std::byte> encoded) noexcept;

// Returns the size of the image as shown.
ImageSize shown_size(const ImageSize& stored, Orientation orientation) noexcept;
// Returns the stored window of a window of the image as shown.
ImageWindow stored_window(const ImageWindow& shown, const ImageSize& stored, Orientation orientation) noexcept;
// Turns stored RGB pixels of size `stored` into `shown`, which holds equally many.
void turn_pixels(std::span<const std::uint8_t> pixels, const ImageSize& stored, Orientation orientation,
                 std::span<std::uint8_t> shown) noexcept;

}  // namespace headrace
