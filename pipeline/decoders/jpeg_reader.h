// JPEG through libjpeg-turbo: accurate integer DCT, smooth chroma upsampling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_scan.h"

namespace headrace {

class JpegHandle;

// Reads the entropy-coded data of the common kind of files itself (JpegScan); libjpeg makes pixels of them, and
// judges the files that have a flaw, or are of another kind. Each image gets its own handle, because libjpeg's
// tables would persist: the result for one image never depends on the previous one. Bytes passed to read_size()
// must stay unchanged until they are decoded or other bytes come. README.md says which files are bad.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();

  ImageSize read_size(std::span<const std::byte> encoded);
  // Returns libjpeg's memory beside the pixels of the image whose size was read last: all coefficients if it has
  // several scans.
  std::size_t coefficient_bytes() const noexcept { return coefficient_bytes_; }
  void decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb);
  // Decodes a window. Reads the file to its end: whether it is bad does not depend on the window. Makes the file's
  // index on the way, unless `index` is null; it stays null if the file has none.
  void decode_window(std::span<const std::byte> encoded, const ImageWindow& window, std::span<std::uint8_t> rgb,
                     std::unique_ptr<const JpegIndex>* index);
  // Decodes a window of a file known to be good: does not read what lies below the window.
  void decode_good_window(std::span<const std::byte> encoded, const ImageWindow& window,
                          std::span<std::uint8_t> rgb);
  // Decodes a window of a file with its index: does not read what lies around the window.
  void decode_window(std::span<const std::byte> encoded, const JpegIndex& index, const ImageWindow& window,
                     std::span<std::uint8_t> rgb);

  // Returns the file's index without decoding it; null if it is damaged, or of a kind that gets none.
  std::unique_ptr<const JpegIndex> make_index(std::span<const std::byte> encoded);

  // Returns the library's message on a flaw of the last decoded file that changes no pixel; empty: none.
  const std::string& warning() const noexcept { return warning_; }

  static std::string identity();

 private:
  // Returns the image with its header read: the last one passed to read_size(), or a new one.
  std::unique_ptr<JpegHandle> take(std::span<const std::byte> encoded);
  void read_whole(JpegHandle& jpeg, std::span<std::uint8_t> rgb, JpegScan* scan);
  void read_window(JpegHandle& jpeg, const ImageWindow& window, std::span<std::uint8_t> rgb, JpegScan* scan);
  void read_rest(JpegHandle& jpeg);
  // Returns memory for a row of the image, which stays in the caches when libjpeg-turbo writes it.
  std::uint8_t* line(const JpegHandle& jpeg);

  std::size_t coefficient_bytes_ = 0;
  std::unique_ptr<JpegHandle> opened_;  // by read_size(), until taken
  JpegScan scan_;
  std::vector<std::uint8_t> line_;  // rows before their window is copied out
  std::string warning_;
};

}  // namespace headrace
