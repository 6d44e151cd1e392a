// The index of a JPEG's entropy-coded data, for decoding a part of the image without reading the preceding data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_frame.h"

namespace headrace {

// About 3 % of the file's size. An indexed file is intact: all its bits form an image.
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

  // Appends the index as bytes, which assign() reads: it lies beside the image in a record file (FORMAT.md).
  void append_to(std::vector<std::byte>& bytes) const;
  // Replaces this one; its memory is used again. Returns false, and this one is unusable, if the bytes are none
  // that append_to() writes.
  bool assign(std::span<const std::byte> bytes);
  // Returns whether it has the extents of an index of this image, whose bytes are `encoded`.
  bool fits(const JpegFrame& frame, std::span<const std::byte> encoded) const noexcept;

  JpegIndex() = default;  // to be assigned

  // Builds an index: begin_row() and its entries for each row, then close(). There is room for all entries of the
  // image.
  explicit JpegIndex(const JpegFrame& frame);
  void begin_row(std::size_t byte) noexcept;
  void add(const Entry& entry) noexcept;
  void close(std::size_t byte, std::span<const std::byte> encoded) noexcept;

 private:
  static JpegIndex extents_of(const JpegFrame& frame) noexcept;

  ImageSize size_;
  std::uint64_t content_ = 0;
  std::int64_t interval_ = 0, intervals_ = 0, components_ = 0;
  std::vector<std::uint32_t> rows_;       // first byte of each row, then the last row's last
  std::vector<std::uint32_t> bits_;       // by entry, intervals + 1 per row
  std::vector<std::int16_t> predictors_;  // by entry
};

}  // namespace headrace
