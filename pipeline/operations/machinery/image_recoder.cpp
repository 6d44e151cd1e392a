#include "headrace/pipeline/operations/machinery/image_recoder.h"

#include <algorithm>
#include <array>

#include "headrace/pipeline/decoders/jpeg_writer.h"

namespace headrace {

ImageSize fit_longer_side(const ImageSize& size, std::int64_t max_side) noexcept {
  const std::int64_t longer = std::max(size.height, size.width);
  if (longer <= max_side) return size;
  const auto reduced = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, (2 * side * max_side + longer) / (2 * longer));
  };
  return {.height = reduced(size.height), .width = reduced(size.width)};
}

// Whether an image is bad does not depend on the window.
void ImageRecoder::check(std::span<const std::byte> encoded) {
  std::array<std::uint8_t, 3> pixel;
  decoder_.decode_window(encoded, {.height = 1, .width = 1}, pixel, &index_);
}

std::span<const std::byte> ImageRecoder::recode(std::span<const std::byte> encoded) {
  index_.reset();
  const ImageSize stored = decoder_.read_size(encoded);
  const Orientation orientation = exif_orientation(encoded);
  const Orientation applied = options_.apply_orientation ? orientation : Orientation::kTopLeft;
  const ImageSize size = shown_size(stored, applied);
  const ImageSize wanted = options_.max_side > 0 ? fit_longer_side(size, options_.max_side) : size;
  if (options_.quality == 0 && wanted == size && applied == Orientation::kTopLeft) {
    check(encoded);
    return encoded;
  }
  pixels_.resize(static_cast<std::size_t>(size.height * size.width * 3));
  decoder_.decode(encoded, pixels_);
  if (applied != Orientation::kTopLeft) {
    turned_.resize(pixels_.size());
    turn_pixels(pixels_, stored, applied, turned_);
    pixels_.swap(turned_);
  }
  std::span<const std::uint8_t> result(pixels_);
  if (wanted != size) {
    resized_.resize(static_cast<std::size_t>(wanted.height * wanted.width * 3));
    resampler_.plan(size, wanted, {.height = wanted.height, .width = wanted.width});
    resampler_.run(pixels_.data(), size.width * 3, resized_.data(), 3);
    result = resized_;
  }
  write_jpeg(result, wanted, options_.quality > 0 ? options_.quality : RecodeOptions::kQuality, encoded_,
             options_.apply_orientation ? Orientation::kTopLeft : orientation);
  check(encoded_);
  return encoded_;
}

}  // namespace headrace
