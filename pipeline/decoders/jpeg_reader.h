// JPEG through libjpeg-turbo: accurate integer DCT, smooth chroma upsampling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {

class JpegHandle;

// Each image gets a handle of its own, for libjpeg's tables would live on: what one image gives never depends on
// the one before. Bytes whose size was asked for must stay as they are until they are decoded or other bytes come.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();

  ImageSize read_size(std::span<const std::byte> encoded);
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb);

  static std::string identity();

 private:
  // The image with its header read: the one whose size was asked for last, or a new one.
  std::unique_ptr<JpegHandle> take(std::span<const std::byte> encoded);

  std::unique_ptr<JpegHandle> opened_;  // by read_size(), until it is taken
  std::vector<std::uint8_t> line_;      // rows before their window is copied out
};

}  // namespace headrace
