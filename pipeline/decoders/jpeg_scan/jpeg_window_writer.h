// Writes a window of an indexed JPEG for a device that decodes it (devices/jpeg_window.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_frame.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"
#include "headrace/pipeline/decoders/jpeg_scan/unstuffed_bytes.h"

namespace headrace {

// One axis of a resize, planned: `first` and `weights` as the device gets them, of each pixel of the result.
struct JpegResize {
  JpegAxis axis;
  std::span<const std::int32_t> first;
  std::span<const FixedWeight> weights;
};

// Not thread-safe: keeps its tables and buffers.
class JpegWindowWriter {
 public:
  // Maximum scratch memory of a window on the device: about 6 million of the image's pixels.
  static constexpr std::int64_t kMaxScratch = std::int64_t{16} << 20;

  // Writes a row, whose address modulo 4 is the device's, and describes it; JpegWindow::scratch remains 0. Returns
  // false if devices do not decode such a file (JpegFrame; grey, or Y, Cb and Cr with common factors), or
  // if there is no room; the row then holds anything. REQUIRES: `index` was made from `encoded`, by this process.
  bool write(std::span<const std::byte> encoded, const JpegIndex& index, const JpegResize& vertical,
             const JpegResize& horizontal, std::span<std::byte> row, JpegWindow& window);

 private:
  bool takes_frame() const noexcept;
  void choose_mcus(const JpegIndex& index, JpegWindow& window) const noexcept;
  bool place(std::size_t row_bytes, std::int64_t height, JpegWindow& window) const noexcept;
  JpegTables tables() const noexcept;
  bool write_bits(std::span<const std::byte> encoded, const JpegIndex& index, std::span<std::byte> row,
                  JpegWindow& window);

  JpegFrame frame_;
  UnstuffedBytes unstuffed_;
};

}  // namespace headrace
