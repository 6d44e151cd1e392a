// Encoded images to RGB pixels. One decoder a thread: it keeps its handles and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_map.h"

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

  // The whole image as u8 RGB, row-major (H, W, 3); grey is replicated, CMYK converted, alpha dropped.
  // `rgb` holds exactly H * W * 3 bytes.
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);

  // Only the pixels of `window`, equal to decode() and then cropping; much of the work outside is skipped, but for
  // what it takes to throw wherever decode() does. `rgb` holds exactly window.height * window.width * 3 bytes.
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb);

  // The same of bytes that are known to be good, as a map that was made of them says, or a decode without an
  // error: damage below the window is not looked for.
  void decode_good_window(std::span<const std::byte> encoded, const ImageWindow& window,
                          std::span<std::uint8_t> rgb);

  // What makes windows of this image cheaper: the parts of its bits beside them are not even looked at. Takes a
  // third of what decoding does. An image that has one is good: decode() would find nothing wrong with its bits.
  // Null where there is no such thing: for PNGs, progressive and damaged JPEGs.
  std::unique_ptr<const JpegMap> map(std::span<const std::byte> encoded);
  // The same pixels, with the help of the map of the very same bytes.
  void decode_window(std::span<const std::byte> encoded, const JpegMap& map, const ImageWindow& window,
                     std::span<std::uint8_t> rgb);

  // What was wrong with the image decoded last but changes no pixel of it; empty: nothing. A map says nothing of
  // it, for an image with such a flaw has none.
  const std::string& warning() const noexcept;

  // Names and versions of the libraries behind the pixels: part of every cache key and stream fingerprint.
  static std::string identity();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
