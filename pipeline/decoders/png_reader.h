// PNG through libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {

// Keeps a row buffer, and nothing of an image after its call.
class PngReader {
 public:
  ImageSize read_size(std::span<const std::byte> encoded);
  // Returns the memory for decoding a window beside its pixels, by the size that was read last.
  std::size_t window_bytes() const noexcept { return window_bytes_; }
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);
  // Decodes the numbers of an image of one channel, grey or indices of a palette, as they are stored: 1 to 8 bits,
  // not scaled. Throws Error(kDataCorrupt) if it has colours, alpha or more bits.
  void decode_numbers(std::span<const std::byte> encoded, std::span<std::uint8_t> numbers);
  // Decodes a window. Reads the file to its end: whether it is bad does not depend on the window.
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb);

  // Returns the library's message on a flaw of the last decoded file that changes no pixel; empty: none.
  const std::string& warning() const noexcept { return warning_; }

  static std::string identity();

 private:
  std::size_t window_bytes_ = 0;
  std::vector<std::uint8_t> row_;  // before its window is copied out
  std::string warning_;
};

}  // namespace headrace
