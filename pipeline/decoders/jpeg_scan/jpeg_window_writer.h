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

// Memory that the rows of a batch share, for windows that need more than their row. Thread-safe.
class JpegOverflow {
 public:
  JpegOverflow() = default;  // none
  // `used` counts the bytes in use; `memory` is aligned to 64 bytes.
  JpegOverflow(std::span<std::byte> memory, std::uint32_t& used) noexcept : memory_(memory), used_(&used) {}

  // Returns so many bytes, aligned to 64; empty if there are no more.
  std::span<std::byte> take(std::size_t bytes) const noexcept;

 private:
  std::span<std::byte> memory_;
  std::uint32_t* used_ = nullptr;
};

// Where a window goes.
struct JpegDestination {
  std::span<std::byte> row;
  JpegOverflow overflow;
  JpegWindow* window = nullptr;  // describes it
};

// Not thread-safe: keeps its tables and buffers.
class JpegWindowWriter {
 public:
  // Maximum scratch memory of a window on the device: 1.2 to 2.4 million of the image's pixels.
  static constexpr std::int64_t kMaxScratch = std::int64_t{16} << 20;

  // Opens a window of a file; `vertical` and `horizontal` are the resize of its pixels. Returns false if devices
  // do not decode such files (JpegFrame; grey, or Y, Cb and Cr with common factors), or windows so large.
  // REQUIRES: what is given stays until it is written.
  bool open(std::span<const std::byte> encoded, const JpegResize& vertical, const JpegResize& horizontal);
  // Writes the window, at an address which is the device's modulo 4, and describes it; JpegWindow::scratch remains
  // 0. Returns false if there is no room, or the index is not the file's; the row then holds anything. REQUIRES:
  // open() returned true; the index passed its checks: devices believe where it says that intervals begin.
  bool write(const JpegIndex& index, const JpegDestination& to);

  // Moves a window from one row of a batch to another of `bytes`; `window` describes it before and after.
  static void move(const std::byte* from, std::byte* to, std::size_t bytes, JpegWindow& window) noexcept;

 private:
  bool takes_frame() const noexcept;
  void choose_mcus() noexcept;
  bool place_scratch() noexcept;
  void choose_intervals(const JpegIndex& index, JpegWindow& window) const noexcept;
  void place(std::ptrdiff_t at, JpegWindow& window) const noexcept;
  std::int32_t axes_bytes() const noexcept;
  JpegTables tables() const noexcept;
  bool write_bits(const JpegIndex& index, std::byte* row, JpegWindow& window);

  std::span<const std::byte> encoded_;
  JpegResize vertical_, horizontal_;
  JpegWindow opened_;  // without what the index and the row decide
  JpegFrame frame_;
  UnstuffedBytes unstuffed_;
};

}  // namespace headrace
