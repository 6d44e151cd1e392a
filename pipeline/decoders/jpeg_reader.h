// JPEG through libjpeg-turbo: accurate integer DCT, smooth chroma upsampling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {

// Keeps buffers, and nothing of an image after its call: what one image gives never depends on the one before.
class JpegReader {
 public:
  ImageSize read_size(std::span<const std::byte> encoded);
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb);

  static std::string identity();

 private:
  std::vector<std::uint8_t> line_;  // rows before their window is copied out
};

}  // namespace headrace
