// A table for passing over the coefficients of a block, several at a time.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/pipeline/decoders/huffman_code.h"

namespace headrace {

// Made of the code of a component's AC coefficients (ITU-T T.81, F.1.2.2): what the next bits say of as many
// coefficients as they say all about.
class CoefficientSteps {
 public:
  static constexpr int kLookup = 11;  // bits
  static_assert(kLookup <= HuffmanCode::kLookup, "longer words are not found in time");
  static constexpr int kMostBits = kLookup + 15;
  static constexpr int kEnd = 128;  // is added where all further coefficients are 0

  struct Step {
    std::uint8_t bits = 0;
    std::uint8_t coefficients = 255;  // 255: nothing is known
  };

  void assign(const HuffmanCode& code) noexcept {
    for (std::uint32_t bits = 0; bits < steps_.size(); ++bits) steps_[bits] = step_of(code, bits);
  }

  // `bits`: the first one is the highest of 64.
  Step next(std::uint64_t bits) const noexcept { return steps_[bits >> (64 - kLookup)]; }

 private:
  static Step step_of(const HuffmanCode& code, std::uint32_t bits) noexcept {
    Step step;
    int used = 0, coefficients = 0;
    for (std::uint64_t rest = std::uint64_t{bits} << (64 - kLookup); used < kLookup;) {
      const HuffmanCode::Symbol symbol = code.read_short(rest);
      if (symbol.length == 0 || symbol.length > kLookup - used) break;
      const int size = symbol.value & 15, run = symbol.value >> 4;
      const bool ends = size == 0 && run != 15;
      coefficients += ends ? kEnd : run + 1;
      if ((coefficients & (kEnd - 1)) > 63) break;  // no block has as many
      used += symbol.length + size;
      step = {.bits = static_cast<std::uint8_t>(used), .coefficients = static_cast<std::uint8_t>(coefficients)};
      if (ends) break;
      rest <<= symbol.length + size;
    }
    return step;
  }

  std::array<Step, 1 << kLookup> steps_{};
};

}  // namespace headrace
