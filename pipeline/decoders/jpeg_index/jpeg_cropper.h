// Lossless cropping: makes a small JPEG from a window of a large one without decoding either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_index/entropy_bits.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_frame.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_index.h"

namespace headrace {

struct CroppedJpeg {
  std::span<const std::byte> encoded;
  ImageWindow window;  // the wanted window, in the small image
};

// Copies the MCUs around the window bit by bit and rewrites only the first DC difference of each row, which
// depends on preceding data. libjpeg decodes the window to the same pixels, bit for bit. Not thread-safe: keeps
// its buffers.
class JpegCropper {
 public:
  // Returns a crop, valid until the next call; std::nullopt if decoding the file itself takes hardly longer, or if
  // its Huffman codes lack a codeword that the crop needs. REQUIRES: `index` was made from `encoded`.
  std::optional<CroppedJpeg> crop(std::span<const std::byte> encoded, const JpegIndex& index,
                                  const ImageWindow& window);

 private:
  // MCUs: [top, bottom) x [left, right).
  struct Part {
    std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  };

  Part part_around(const ImageWindow& window) const noexcept;
  bool is_worth_it(const Part& part) const noexcept;
  void write_header(std::span<const std::byte> encoded, const Part& part);
  void write_codes();
  bool write_row(std::span<const std::byte> encoded, const JpegIndex& index, std::int64_t row, const Part& part,
                 DcPredictors& last, EntropyBitWriter& writer);
  bool write_first_mcu(EntropyBitReader& bits, std::uint64_t end, DcPredictors& predictors,
                       const DcPredictors& last, EntropyBitWriter& writer);
  bool write_dc_difference(std::size_t component, int difference, EntropyBitWriter& writer) const noexcept;
  void copy_bits(std::uint64_t from, std::uint64_t to, EntropyBitWriter& writer) const;

  JpegFrame frame_;
  UnstuffedBytes unstuffed_;  // of one row
  std::vector<std::uint8_t> output_;
};

}  // namespace headrace
