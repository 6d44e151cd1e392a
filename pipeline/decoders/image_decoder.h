// Encoded images to RGB pixels. One decoder a thread: it keeps its handles and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_index.h"

namespace headrace {

// Not thread-safe. JPEG through libjpeg-turbo, PNG through libpng, told apart by their first bytes.
// Every malformed or truncated input is an Error(kDataCorrupt) with the library's own words, and never stale
// or partly filled pixels passed off as good: warnings of the JPEG library about corrupt data are errors too.
// README.md, "Which records are bad", has the rule: it is one for the whole image and for each window of it.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header only. Rejects images above 2^28 pixels, or of more than any file of this size holds.
  ImageSize read_size(std::span<const std::byte> encoded);
  // The memory that decode(), or decode_window(), takes for a while beside the pixels that it fills, by the header
  // that read_size() read last: much where a JPEG has several scans or a PNG is interlaced, next to nothing else.
  std::size_t decode_bytes() const noexcept;
  std::size_t window_bytes() const noexcept;

  // The whole image as u8 RGB, row-major (H, W, 3); grey is replicated, CMYK converted, alpha dropped.
  // `rgb` holds exactly H * W * 3 bytes.
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);

  // Only the pixels of `window`, equal to decode() and then cropping; much of the work outside is skipped, but for
  // what it takes to throw wherever decode() does. `rgb` holds exactly window.height * window.width * 3 bytes.
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb);

  // The same for bytes that are known to be good, because they have an index or were decoded without an error:
  // damage below the window is not looked for.
  void decode_good_window(std::span<const std::byte> encoded, const ImageWindow& window,
                          std::span<std::uint8_t> rgb);

  // Makes windows of this image cheaper: the bits beside them are not even read. Takes a third of the time of
  // decode(). An image that has an index is good: decode() would find nothing wrong with it. Null for PNGs and for
  // progressive and damaged JPEGs.
  std::unique_ptr<const JpegIndex> index(std::span<const std::byte> encoded);
  // The same pixels as the other decode_window(); `index` was made from the same bytes.
  void decode_window(std::span<const std::byte> encoded, const JpegIndex& index, const ImageWindow& window,
                     std::span<std::uint8_t> rgb);

  // A flaw of the image decoded last that changes none of its pixels; empty: it has none. Images with such a flaw
  // get no index.
  const std::string& warning() const noexcept;

  // Names and versions of the libraries behind the pixels: part of every cache key and stream fingerprint.
  static std::string identity();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
