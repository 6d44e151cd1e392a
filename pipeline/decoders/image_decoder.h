// Decodes images to RGB pixels. One decoder per thread: it keeps its handles and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"

namespace headrace {

// Not thread-safe. JPEG through libjpeg-turbo, PNG through libpng, recognised by their first bytes. Every
// malformed or truncated input is an Error(kDataCorrupt) with the library's message, and stale or partly filled
// pixels never pass as good: the JPEG library's warnings about corrupt data are errors, too. For the rule see
// README.md, "Which records are bad": it is the same for the whole image and each window.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header only. Rejects images above 2^28 pixels, or with more than any file of this size can hold.
  ImageSize read_size(std::span<const std::byte> encoded);
  // Return the temporary memory of decode() and decode_window() beside the output pixels, by the header that
  // read_size() read last: much if a JPEG has several scans or a PNG is interlaced, otherwise next to nothing.
  std::size_t decode_bytes() const noexcept;
  std::size_t window_bytes() const noexcept;

  // Decodes the whole image as u8 RGB, row-major (H, W, 3); grey is replicated, CMYK converted, alpha dropped.
  // REQUIRES: `rgb` holds exactly H * W * 3 bytes.
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);

  // Decodes a PNG of one channel and up to 8 bits to its numbers, as they are stored. Throws Error(kDataCorrupt)
  // for any other image. REQUIRES: `numbers` holds exactly H * W bytes.
  void decode_numbers(std::span<const std::byte> encoded, std::span<std::uint8_t> numbers);

  // Decodes only the pixels of `window`, as a cropped decode(); skips other work, except what it needs to throw
  // whenever decode() does. Unless `index` is null, sets it to the image's, with which windows are cheaper: the
  // bits around them are not even read. PNGs, progressive JPEGs and those with a warning have none. REQUIRES:
  // `rgb` holds exactly window.height * window.width * 3 bytes.
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb,
                     std::unique_ptr<const JpegIndex>* index = nullptr);
  // Decodes a window of bytes known to be good, because they were decoded without an error: does not look for
  // damage below the window.
  void decode_good_window(std::span<const std::byte> encoded, const ImageWindow& window,
                          std::span<std::uint8_t> rgb);
  // Decodes the same pixels as the other decode_window(). REQUIRES: `index` was made from the same bytes.
  void decode_window(std::span<const std::byte> encoded, const JpegIndex& index, const ImageWindow& window,
                     std::span<std::uint8_t> rgb);

  // Returns a JPEG's index without decoding it; null for any other image, and where decode_window() makes none.
  std::unique_ptr<const JpegIndex> make_index(std::span<const std::byte> encoded);

  // Returns a flaw of the last decoded image that changes none of its pixels; empty: none. Images with such a flaw
  // get no index.
  const std::string& warning() const noexcept;

  // Returns names and versions of the libraries in use: part of every cache key and stream fingerprint.
  static std::string identity();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
