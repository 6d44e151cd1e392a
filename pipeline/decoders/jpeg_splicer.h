// Makes a small JPEG of a window of a large one, whose pixels it shares, without decoding either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_bit_writer.h"
#include "headrace/pipeline/decoders/jpeg_bits.h"
#include "headrace/pipeline/decoders/jpeg_frame.h"
#include "headrace/pipeline/decoders/jpeg_levels.h"
#include "headrace/pipeline/decoders/jpeg_map.h"
#include "headrace/pipeline/decoders/unstuffed_bytes.h"

namespace headrace {

struct SplicedJpeg {
  std::span<const std::byte> encoded;
  ImageWindow window;  // where the wanted one is in it
};

// The units around the window are copied bit by bit; only the level each row begins with is written anew, as it
// says a difference from what came before. What libjpeg makes of the window is the same to the last bit.
// Not thread-safe: keeps its buffers.
class JpegSplicer {
 public:
  // Of the file that `map` was made of. Valid until the next call; nothing where decoding the file itself takes
  // hardly longer, or its code has no words for what would have to be written.
  std::optional<SplicedJpeg> splice(std::span<const std::byte> encoded, const JpegMap& map,
                                    const ImageWindow& window);

 private:
  // Units: [top, bottom) x [left, right).
  struct Part {
    std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  };

  Part part_around(const ImageWindow& window) const noexcept;
  bool is_worth_it(const Part& part) const noexcept;
  void write_header(std::span<const std::byte> encoded, const Part& part);
  void write_codes();
  bool write_row(std::span<const std::byte> encoded, const JpegMap& map, std::int64_t row, const Part& part,
                 JpegLevels& last, JpegBitWriter& writer);
  bool write_first_unit(JpegBits& bits, std::uint64_t end, JpegLevels& levels, const JpegLevels& last,
                        JpegBitWriter& writer);
  bool write_level(std::size_t component, int difference, JpegBitWriter& writer) const noexcept;
  void copy_bits(std::uint64_t from, std::uint64_t to, JpegBitWriter& writer) const;

  JpegFrame frame_;
  UnstuffedBytes unstuffed_;  // of one row
  std::vector<std::uint8_t> output_;
};

}  // namespace headrace
