// Walks through the units (MCUs) of a JPEG's entropy-coded bits without decoding their pixels.
#pragma once

#include <cstdint>

#include "headrace/pipeline/decoders/jpeg_bits.h"
#include "headrace/pipeline/decoders/jpeg_frame.h"
#include "headrace/pipeline/decoders/jpeg_levels.h"

namespace headrace {

class JpegUnits {
 public:
  static constexpr int kMostLevel = 2047;  // of either sign; more than 8-bit samples have

  explicit JpegUnits(const JpegFrame& frame) : frame_(frame) {}

  // Passes over one block of a component. False where it is damaged or ends behind `end`.
  bool skip_block(JpegBits& bits, std::uint64_t end, std::size_t component, JpegLevels& levels) const noexcept {
    return skip_difference(bits, component, levels) && skip_coefficients(bits, end, component);
  }
  bool skip_coefficients(JpegBits& bits, std::uint64_t end, std::size_t component) const noexcept {
    const std::size_t table = frame_.ac_of[component];
    return bits.skip_coefficients(frame_.ac[table], frame_.steps[table]) && bits.at() <= end;
  }
  bool skip_difference(JpegBits& bits, std::size_t component, JpegLevels& levels) const noexcept {
    int difference = 0;
    if (!bits.read_difference(frame_.dc[frame_.dc_of[component]], difference)) return false;
    const int level = levels[component] + difference;
    levels[component] = static_cast<std::int16_t>(level);
    return level >= -kMostLevel && level <= kMostLevel;
  }
  // Passes over `count` units.
  bool skip(JpegBits& bits, std::uint64_t end, std::int64_t count, JpegLevels& levels) const noexcept {
    for (; count > 0; --count) {
      for (int block = 0; block < frame_.blocks; ++block) {
        if (!skip_block(bits, end, frame_.component_of[static_cast<std::size_t>(block)], levels)) return false;
      }
    }
    return true;
  }

 private:
  const JpegFrame& frame_;
};

}  // namespace headrace
