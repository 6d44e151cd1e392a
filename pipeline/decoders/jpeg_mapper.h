// Makes the maps of JPEGs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "headrace/pipeline/decoders/jpeg_bits.h"
#include "headrace/pipeline/decoders/jpeg_frame.h"
#include "headrace/pipeline/decoders/jpeg_map.h"
#include "headrace/pipeline/decoders/unstuffed_bytes.h"

namespace headrace {

// Not thread-safe: keeps its buffers.
class JpegMapper {
 public:
  // Null for what is no JPEG of the common kind (JpegFrame), or not in perfect order: that is decoded without a
  // map.
  std::unique_ptr<const JpegMap> map(std::span<const std::byte> encoded);

 private:
  // Up to the end of the image, or false.
  bool map_rows(std::span<const std::byte> encoded, JpegMap& map);
  void begin_segment(std::span<const std::byte> encoded, std::size_t at);
  bool is_at_end(std::span<const std::byte> encoded, const JpegBits& bits) const;
  bool pass_restart(std::span<const std::byte> encoded, const JpegBits& bits);
  bool map_row(JpegBits& bits, JpegLevels& levels, JpegMap& map);

  JpegFrame frame_;
  UnstuffedBytes unstuffed_;  // of the segment, which ends with the image or a restart marker
  std::size_t segment_ = 0;   // where it begins in the file
  int restarts_ = 0;
};

}  // namespace headrace
