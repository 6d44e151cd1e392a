// Look-up tables that take several of a block's AC coefficients at once (ITU-T T.81, F.1.2.2 and F.2.2.2). Each is
// made from a Huffman code, and lists for every value of the next bits what these determine.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/pipeline/decoders/jpeg_scan/huffman_code.h"

namespace headrace {

// The meaning of one symbol and the bits after it.
struct AcSymbol {
  int run = 0;        // zero coefficients before this one
  int size = 0;       // bits of the coefficient after the codeword; 0: it is zero
  int length = 0;     // of the codeword; 0: none matches
  bool ends = false;  // the block

  static AcSymbol of(const HuffmanCode::Symbol& symbol) noexcept {
    const int size = symbol.value & 15, run = symbol.value >> 4;
    return {.run = run, .size = size, .length = symbol.length, .ends = size == 0 && run != 15};
  }
};

// Returns the coefficient of `size` bits that `bits` begins with (F.2.2.1, EXTEND). Without branches.
inline int extended(std::uint64_t bits, int size) noexcept {
  const auto value = static_cast<std::int64_t>(bits >> 1 >> (63 - size));
  const std::int64_t if_negative = ~(static_cast<std::int64_t>(bits) >> 63);  // all ones, where the first bit is 0
  return static_cast<int>(value + (if_negative & (1 - (std::int64_t{1} << size))));
}

// A position within a block after a step. Below 64 the block continues, at 64 it is full; a higher one carries a
// mark.
struct AcPlace {
  // Added if an end-of-block code was read.
  static constexpr unsigned kEnd = 128;
  // Added if the bits determine nothing: their symbol is read by itself.
  static constexpr unsigned kUnknown = 224;

  // Returns whether the block is complete and no coefficient lies beyond it. REQUIRES: place >= 64.
  static bool is_complete(unsigned place) noexcept { return place == 64 || (place >= kEnd && place < kEnd + 64); }
};

// Gives up to two coefficients a step, or one and the end of the block.
class AcReadTable {
 public:
  static constexpr int kLookup = 10;  // bits
  static constexpr int kMaxBits = kLookup;
  static_assert(kLookup <= HuffmanCode::kLookup, "longer codewords are not in the lookup table");

  // A step from place `at`: coefficient `at + first_at` is `first`, and `at + second_at` is `second`; where there
  // is only one, both are the same. Then `at` grows by `advance`.
  struct Step {
    std::int16_t first = 0, second = 0;
    std::uint8_t first_at = 0, second_at = 0;
    std::uint8_t advance = AcPlace::kUnknown;
    std::uint8_t bits = 0;
  };

  // As HuffmanCode::assign(), costs next to nothing the second time.
  void assign(const HuffmanCode& code) noexcept;
  Step next(std::uint64_t bits) const noexcept { return steps_[bits >> (64 - kLookup)]; }

 private:
  HuffmanCode::Definition made_from_;
  std::array<Step, 1 << kLookup> steps_{};
};

// Skips as many coefficients a step as the bits determine.
class AcSkipTable {
 public:
  static constexpr int kLookup = 11;  // bits
  static constexpr int kMaxBits = kLookup + 15;
  static_assert(kLookup <= HuffmanCode::kLookup, "longer codewords are not in the lookup table");

  struct Step {
    std::uint8_t bits = 0;
    std::uint8_t advance = AcPlace::kUnknown;
  };

  // As HuffmanCode::assign(), costs next to nothing the second time.
  void assign(const HuffmanCode& code) noexcept;
  Step next(std::uint64_t bits) const noexcept { return steps_[bits >> (64 - kLookup)]; }

 private:
  static Step step_of(const HuffmanCode& code, std::uint32_t bits) noexcept;

  HuffmanCode::Definition made_from_;
  std::array<Step, 1 << kLookup> steps_{};
};

}  // namespace headrace
