// Recodes images: decoded, turned, resized, encoded as JPEG. An EXIF orientation that is not applied is kept, and
// no other metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/operations/machinery/resampler.h"

namespace headrace {

struct RecodeOptions {
  std::int64_t max_side = 0;  // longer sides are reduced to this, aspect kept; 0: no limit
  int quality = 0;            // 1 to 100: every image is encoded again; 0: only those that change, at kQuality
  bool apply_orientation = false;  // turns images as their EXIF data say and drops those data

  static constexpr int kQuality = 90;
};

// Not thread-safe.
class ImageRecoder {
 public:
  explicit ImageRecoder(RecodeOptions options) : options_(options) {}

  // Returns `encoded` itself if it stays as it is, otherwise bytes of this object, valid until the next call.
  // Throws Error if the image is bad, even if it would stay as it is.
  std::span<const std::byte> recode(std::span<const std::byte> encoded);
  // Returns the index of what recode() returned last; null: it has none.
  const JpegIndex* index() const noexcept { return index_.get(); }

 private:
  void check(std::span<const std::byte> encoded);

  RecodeOptions options_;
  ImageDecoder decoder_;
  Resampler resampler_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> turned_;
  std::vector<std::uint8_t> resized_;
  std::vector<std::byte> encoded_;
  std::unique_ptr<const JpegIndex> index_;
};

// Returns the size whose longer side is `max_side`, rounded to nearest and never 0; `size` itself if it fits.
ImageSize fit_longer_side(const ImageSize& size, std::int64_t max_side) noexcept;

}  // namespace headrace
