// What a JPEG's header says, as far as it takes to walk through its entropy-coded bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/coefficient_steps.h"
#include "headrace/pipeline/decoders/huffman_code.h"
#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_levels.h"

namespace headrace {

// Baseline or extended sequential, Huffman-coded, 8 bits a sample, all components in one scan.
struct JpegFrame {
  static constexpr int kMostBlocks = 10;  // in a unit

  struct Bytes {
    std::size_t begin = 0, end = 0;
  };

  ImageSize size;
  int components = 0;
  int unit_height = 0, unit_width = 0;  // pixels of a unit, which is the format's MCU
  std::int64_t unit_rows = 0, unit_columns = 0;
  std::int64_t restart_interval = 0;  // units; 0: none

  // The blocks of a unit, in order: the component, counted in the scan's order, that each belongs to.
  int blocks = 0;
  std::array<std::uint8_t, kMostBlocks> component_of{};
  std::array<std::uint8_t, kMostJpegComponents> dc_of{}, ac_of{};  // table of each component

  std::array<HuffmanCode, 4> dc, ac;
  std::array<CoefficientSteps, 4> steps;  // of `ac`, where a component has it

  std::vector<Bytes> kept;  // segments that a decoder needs beside the frame, the Huffman tables and the scan
  Bytes frame, scan;        // segments
  std::size_t data = 0;     // where the entropy-coded bytes begin

  void clear() noexcept;
};

// Into `frame`, whose tables are large and are used again; false where the file is none of that kind, or is
// damaged.
bool read_jpeg_frame(std::span<const std::byte> encoded, JpegFrame& frame);

}  // namespace headrace
