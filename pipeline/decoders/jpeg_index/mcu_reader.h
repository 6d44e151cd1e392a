// Skips the MCUs of a JPEG's entropy-coded data without decoding their pixels.
#pragma once

#include <cstdint>

#include "headrace/pipeline/decoders/jpeg_index/entropy_bits.h"
#include "headrace/pipeline/decoders/jpeg_index/jpeg_frame.h"

namespace headrace {

class McuReader {
 public:
  static constexpr int kMaxPredictor = 2047;  // magnitude; 8-bit samples stay below it

  explicit McuReader(const JpegFrame& frame) : frame_(frame) {}

  // Skips one block of a component. Returns false if it is damaged or ends after bit `end`.
  bool skip_block(EntropyBitReader& bits, std::uint64_t end, std::size_t component,
                  DcPredictors& predictors) const noexcept {
    return skip_dc(bits, component, predictors) && skip_ac(bits, end, component);
  }
  bool skip_ac(EntropyBitReader& bits, std::uint64_t end, std::size_t component) const noexcept {
    const std::size_t table = frame_.ac_of[component];
    return bits.skip_ac(frame_.ac[table], frame_.ac_skips[table]) && bits.at() <= end;
  }
  bool skip_dc(EntropyBitReader& bits, std::size_t component, DcPredictors& predictors) const noexcept {
    int difference = 0;
    if (!bits.read_dc_difference(frame_.dc[frame_.dc_of[component]], difference)) return false;
    const int dc = predictors[component] + difference;
    predictors[component] = static_cast<std::int16_t>(dc);
    return dc >= -kMaxPredictor && dc <= kMaxPredictor;
  }
  // Skips `count` MCUs. Returns false as skip_block() does.
  bool skip(EntropyBitReader& bits, std::uint64_t end, std::int64_t count,
            DcPredictors& predictors) const noexcept {
    for (; count > 0; --count) {
      for (int block = 0; block < frame_.blocks; ++block) {
        if (!skip_block(bits, end, frame_.component_of[static_cast<std::size_t>(block)], predictors)) return false;
      }
    }
    return true;
  }

 private:
  const JpegFrame& frame_;
};

}  // namespace headrace
