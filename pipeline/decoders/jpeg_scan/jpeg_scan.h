// Reads the entropy-coded data of a JPEG in libjpeg's place: faster, and only what is needed of an indexed file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headrace/pipeline/decoders/jpeg_scan/ac_tables.h"
#include "headrace/pipeline/decoders/jpeg_scan/entropy_bit_reader.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_frame.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"
#include "headrace/pipeline/decoders/jpeg_scan/unstuffed_bytes.h"

namespace headrace {

// The coefficients of 8 x 8 samples as the file holds them, in row-major order.
using CoefficientBlock = std::int16_t[64];

// Gives libjpeg the coefficients of one image, MCU by MCU. Judges what it reads more strictly than libjpeg, which
// has the last word on a file with any flaw. Not thread-safe: keeps its tables and buffers.
class JpegScan {
 public:
  // Opens an image whose data are read to the end. Returns false if it is not a JPEG of the common kind
  // (JpegFrame), or has restart markers within a row of MCUs. REQUIRES: `encoded` stays until the next call.
  bool open(std::span<const std::byte> encoded, bool makes_index);
  // Opens an image with its index: only the MCUs of the window are read, and a few before them in each row.
  // REQUIRES: as above; the index stays, too, and was made from `encoded`.
  bool open(std::span<const std::byte> encoded, const JpegIndex& index);

  // Limits reading to the MCUs that cover these columns of pixels. Without it, all columns are read.
  void limit_columns(std::int64_t left, std::int64_t width) noexcept;

  // Reads the next MCU, in scan order, into `blocks`, which are zero; skips it if `blocks` is null or the MCU lies
  // in other columns. Does nothing after a flaw.
  void next_mcu(CoefficientBlock* const* blocks) noexcept;

  // Returns whether what was read until now is damaged.
  bool is_flawed() const noexcept { return flawed_; }
  // Reads on to the end of the image. Returns whether all of it is sound. REQUIRES: opened without an index.
  bool finish() noexcept;
  // Returns the index; null unless one was to be made, and finish() returned true.
  std::unique_ptr<const JpegIndex> take_index() noexcept;

 private:
  bool begin(std::span<const std::byte> encoded);
  void begin_segment(std::size_t at) noexcept;
  bool begin_row() noexcept;
  bool pass_restart() noexcept;
  bool is_at_marker(unsigned marker) noexcept;
  void add_entry() noexcept;
  bool pass_mcu(CoefficientBlock* const* blocks) noexcept;
  bool read_indexed(CoefficientBlock* const* blocks) noexcept;
  bool seek() noexcept;
  bool read_mcu(CoefficientBlock* const* blocks) noexcept;
  bool skip_mcu() noexcept;
  bool pass_dc(EntropyBitReader& bits, std::size_t component) noexcept;
  AcCode ac_of(std::size_t component) const noexcept;

  std::span<const std::byte> encoded_;
  JpegFrame frame_;
  std::array<AcReadTable, 4> reads_;  // of the AC codes that a component uses
  std::array<AcSkipTable, 4> skips_;  // the same, when the first MCU is skipped
  bool has_skips_ = false;

  const JpegIndex* index_ = nullptr;  // with which the image was opened
  std::unique_ptr<JpegIndex> made_;
  std::int64_t next_entry_ = 0;  // the column at which it gets one

  UnstuffedBytes unstuffed_;      // a segment, which ends with the image or a restart marker; with an index, a row
  std::size_t segment_ = 0;       // its offset in the file
  std::uint64_t row_begin_ = 0;   // the bit in it that begins the byte of the row's first
  std::int64_t sought_row_ = -1;  // the row in it, with an index
  int restarts_ = 0;
  EntropyBitReader bits_;
  DcPredictors predictors_{};

  std::int64_t row_ = 0, column_ = 0;               // of the next MCU
  std::int64_t first_column_ = 0, end_column_ = 0;  // that are read
  bool flawed_ = false;
};

}  // namespace headrace
