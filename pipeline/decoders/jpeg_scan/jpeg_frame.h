// The contents of a JPEG's header that are needed to read its entropy-coded data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_scan/huffman_code.h"

namespace headrace {

constexpr int kMaxJpegComponents = 4;

// Each component's DC predictor: the DC coefficient of its last block, from which the next block's difference
// counts.
using DcPredictors = std::array<std::int16_t, kMaxJpegComponents>;

// The row-major place of each coefficient in the order of the file (ITU-T T.81, figure A.6). Steps that lead
// beyond a block are only found out after they have written: they write its last place.
inline constexpr std::array<std::uint8_t, 64 + 2 * 16> kRowMajor = [] {
  std::array<std::uint8_t, 64 + 2 * 16> order{};
  order.fill(63);
  int row = 0, column = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    order[i] = static_cast<std::uint8_t>(row * 8 + column);
    const bool up = (row + column) % 2 == 0;
    if (up ? column == 7 : row == 7) {
      up ? ++row : ++column;
    } else if (up ? row == 0 : column == 0) {
      up ? ++column : ++row;
    } else {
      row += up ? -1 : 1;
      column += up ? 1 : -1;
    }
  }
  return order;
}();

// Baseline or extended sequential, Huffman-coded, 8 bits per sample, all components in one scan.
struct JpegFrame {
  static constexpr int kMaxBlocks = 10;  // in an MCU

  ImageSize size;
  int components = 0;
  int mcu_height = 0, mcu_width = 0;  // pixels
  std::int64_t mcu_rows = 0, mcu_columns = 0;
  std::int64_t restart_interval = 0;  // MCUs; 0: none

  // The component of each block of an MCU, as an index into the scan's components.
  int blocks = 0;
  std::array<std::uint8_t, kMaxBlocks> component_of{};
  std::array<std::uint8_t, kMaxJpegComponents> dc_of{}, ac_of{};  // table of each component

  // Its blocks in an MCU, across and down, and its quantizers, row-major.
  std::array<std::uint8_t, kMaxJpegComponents> across{}, down{};
  std::array<std::array<std::uint16_t, 64>, kMaxJpegComponents> quantizers{};
  // Whether the components are certainly Y, Cb and Cr, in this order.
  bool is_ycc = false;

  std::array<HuffmanCode, 4> dc, ac;
  std::size_t data = 0;  // start of the entropy-coded data

  void clear() noexcept;
};

// Reads into `frame`. Returns false if the file is not of this kind, or is damaged.
bool read_jpeg_frame(std::span<const std::byte> encoded, JpegFrame& frame);

}  // namespace headrace
