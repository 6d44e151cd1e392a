// A table for skipping the AC coefficients of a block, several at a time.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/pipeline/decoders/jpeg_index/huffman_code.h"

namespace headrace {

// Made from the Huffman code of a component's AC coefficients (ITU-T T.81, F.1.2.2). For each value of the next
// bits it has the coefficients that these determine entirely.
class AcSkipTable {
 public:
  static constexpr int kLookup = 11;  // bits
  static_assert(kLookup <= HuffmanCode::kLookup, "longer codewords are not in the lookup table");
  static constexpr int kMaxBits = kLookup + 15;
  static constexpr int kEnd = 128;  // added where an end-of-block code follows

  struct Step {
    std::uint8_t bits = 0;
    std::uint8_t coefficients = 255;  // 255: none is determined
  };

  void assign(const HuffmanCode& code) noexcept {
    for (std::uint32_t bits = 0; bits < steps_.size(); ++bits) steps_[bits] = step_of(code, bits);
  }

  // The first of the 64 bits is the highest.
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
      if ((coefficients & (kEnd - 1)) > 63) break;  // more than a block has
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
