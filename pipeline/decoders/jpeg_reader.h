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
// README.md says which files are bad.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();

  ImageSize read_size(std::span<const std::byte> encoded);
  // What libjpeg holds beside the pixels of the image whose size was read last: all coefficients where it has
  // several scans.
  std::size_t coefficient_bytes() const noexcept { return coefficient_bytes_; }
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);
  // Reads the file to its end: whether it is bad does not depend on the window.
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb);
  // Of a file that is known to be good: what lies below the window is not read.
  void decode_good_window(std::span<const std::byte> encoded, const ImageWindow& window,
                          std::span<std::uint8_t> rgb);

  // What was wrong with the file decoded last but changes no pixel, in the library's words; empty: nothing.
  const std::string& warning() const noexcept { return warning_; }

  static std::string identity();

 private:
  // The image with its header read: the one whose size was asked for last, or a new one.
  std::unique_ptr<JpegHandle> take(std::span<const std::byte> encoded);
  void read_window(JpegHandle& jpeg, const ImageWindow& window, std::span<std::uint8_t> rgb);
  void read_rest(JpegHandle& jpeg);

  std::size_t coefficient_bytes_ = 0;
  std::unique_ptr<JpegHandle> opened_;  // by read_size(), until it is taken
  std::vector<std::uint8_t> line_;      // rows before their window is copied out
  std::string warning_;
};

}  // namespace headrace
