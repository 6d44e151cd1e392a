// Makes encoded images smaller: decoded, turned, resized, encoded as JPEG. An EXIF orientation that is not applied
// is kept, and no other metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/operations/machinery/resampler.h"

namespace headrace {

struct RecodeOptions {
  std::int64_t max_side = 0;  // longer sides are reduced to this, aspect kept; 0: none is
  int quality = 0;            // 1 to 100: every image is encoded again; 0: only those that change, at kQuality
  bool apply_orientation =
      false;  // images are turned the way up that their EXIF data say, which are then left out

  static constexpr int kQuality = 90;
};

// Not thread-safe.
class ImageRecoder {
 public:
  explicit ImageRecoder(RecodeOptions options) : options_(options) {}

  // `encoded` itself where it stays as it is, else bytes of this object, valid until the next call. Error where
  // the image is bad, also one that would stay as it is.
  std::span<const std::byte> recode(std::span<const std::byte> encoded);

 private:
  void check(std::span<const std::byte> encoded, const ImageSize& size);

  RecodeOptions options_;
  ImageDecoder decoder_;
  Resampler resampler_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> turned_;
  std::vector<std::uint8_t> resized_;
  std::vector<std::byte> encoded_;
};

// The size whose longer side is `max_side`, rounded to the nearest and never 0; `size` itself where it fits.
ImageSize fit_longer_side(const ImageSize& size, std::int64_t max_side) noexcept;

}  // namespace headrace
