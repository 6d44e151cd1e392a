// Makes the index of a JPEG's entropy-coded data.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "headrace/pipeline/decoders/jpeg_index/entropy_bit_reader.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_frame.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_index.h"
#include "headrace/pipeline/decoders/jpeg_index/unstuffed_bytes.h"

namespace headrace {

// Not thread-safe: keeps its buffers.
class JpegIndexer {
 public:
  // Null if the file is not a JPEG of the common kind (JpegFrame), or not in perfect order: such files are decoded
  // without an index.
  std::unique_ptr<const JpegIndex> index(std::span<const std::byte> encoded);

 private:
  // False unless all rows are sound and the image ends behind them.
  bool index_rows(std::span<const std::byte> encoded, JpegIndex& index);
  void begin_segment(std::span<const std::byte> encoded, std::size_t at);
  bool is_at_end(std::span<const std::byte> encoded, const EntropyBitReader& bits) const;
  bool pass_restart(std::span<const std::byte> encoded, const EntropyBitReader& bits);
  bool index_row(EntropyBitReader& bits, DcPredictors& predictors, JpegIndex& index);

  JpegFrame frame_;
  UnstuffedBytes unstuffed_;  // of the entropy-coded segment, which ends with the image or a restart marker
  std::size_t segment_ = 0;   // where it begins in the file
  int restarts_ = 0;
};

}  // namespace headrace
