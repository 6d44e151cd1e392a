// The index of a JPEG's entropy-coded data, for decoding a part of the image without reading the preceding data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_index/entropy_bits.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_frame.h"

namespace headrace {

// Immutable; about 3 % of the file's size. An indexed file is intact: all its bits form an image.
class JpegIndex {
 public:
  // Each row of MCUs is divided into intervals. An entry is the start of one, or the end of the last one.
  struct Entry {
    std::uint32_t bit = 0;      // of the row's unstuffed bits
    DcPredictors predictors{};  // before it
  };

  const ImageSize& size() const noexcept { return size_; }
  // Returns the hash of the file from which it was made.
  std::uint64_t content() const noexcept { return content_; }
  static std::uint64_t content_of(std::span<const std::byte> encoded) noexcept;

  std::int64_t interval() const noexcept { return interval_; }  // MCUs
  // Returns the row's entropy-coded bytes, and a few more; the first byte holds its first bit.
  std::span<const std::byte> row(std::span<const std::byte> encoded, std::int64_t row) const noexcept;
  // Returns the start of an interval of the row; entry(row, intervals()) is the row's end.
  Entry entry(std::int64_t row, std::int64_t interval) const noexcept;
  std::int64_t intervals() const noexcept { return intervals_; }

  std::uint64_t bytes() const noexcept;

 private:
  friend class JpegIndexer;

  ImageSize size_;
  std::uint64_t content_ = 0;
  std::int64_t interval_ = 0, intervals_ = 0, components_ = 0;
  std::vector<std::uint32_t> rows_;       // first byte of each row, then the last row's last
  std::vector<std::uint32_t> bits_;       // by entry, intervals + 1 per row
  std::vector<std::int16_t> predictors_;  // by entry
};

// Makes the index of a JPEG's entropy-coded data. Not thread-safe: keeps its buffers.
class JpegIndexer {
 public:
  // Returns the index; null if the file is not a JPEG of the common kind (JpegFrame), or has any flaw: such files
  // are decoded without an index.
  std::unique_ptr<const JpegIndex> index(std::span<const std::byte> encoded);

 private:
  // Returns false unless all rows are sound and the image ends after them.
  bool index_rows(std::span<const std::byte> encoded, JpegIndex& index);
  void begin_segment(std::span<const std::byte> encoded, std::size_t at);
  bool is_at_end(std::span<const std::byte> encoded, const EntropyBitReader& bits) const;
  bool pass_restart(std::span<const std::byte> encoded, const EntropyBitReader& bits);
  bool index_row(EntropyBitReader& bits, DcPredictors& predictors, JpegIndex& index);

  JpegFrame frame_;
  UnstuffedBytes unstuffed_;  // of the entropy-coded segment, which ends with the image or a restart marker
  std::size_t segment_ = 0;   // its offset in the file
  int restarts_ = 0;
};

}  // namespace headrace
