// The entropy-coded bits of a JPEG (ITU-T T.81, F.1.2), without the zeros that are stuffed behind bytes of ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/pipeline/decoders/coefficient_steps.h"
#include "headrace/pipeline/decoders/huffman_code.h"

namespace headrace {

// A place in bits that may be read a good way beyond their end.
class JpegBits {
 public:
  static constexpr int kSeen = 57;  // bits that see() gives at least
  static_assert(2 * CoefficientSteps::kMostBits <= kSeen, "two steps are taken of what is seen once");
  static constexpr std::size_t kSlack = 320;  // bytes behind the end that may be read: more than a block can take

  JpegBits(const std::uint8_t* bytes, std::uint64_t at) : bytes_(bytes), at_(at) {}

  std::uint64_t at() const noexcept { return at_; }
  void skip(int bits) noexcept { at_ += static_cast<std::uint64_t>(bits); }
  // What comes next, in the highest bits.
  std::uint64_t see() const noexcept { return see(bytes_, at_); }
  static std::uint64_t see(const std::uint8_t* bytes, std::uint64_t at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at / 8, sizeof word);
    return __builtin_bswap64(word) << at % 8;
  }

  // The difference a block begins with (F.2.2.1) into `difference`. False where there is none.
  bool read_difference(const HuffmanCode& code, int& difference) noexcept {
    const std::uint64_t bits = see();
    const HuffmanCode::Symbol size = code.read(bits);
    if (size.length == 0 || size.value > kMostDifferenceBits) return false;
    difference = size.value == 0 ? 0 : extended(bits << size.length >> (64 - size.value), size.value);
    skip(size.length + size.value);
    return true;
  }

  // Passes over the other 63 coefficients of a block (F.2.2.2). False where they are none.
  bool skip_coefficients(const HuffmanCode& code, const CoefficientSteps& steps) noexcept {
    for (int coefficient = 1;;) {
      const std::uint64_t bits = see();
      const CoefficientSteps::Step one = steps.next(bits);
      if (coefficient + one.coefficients < 64) {
        const CoefficientSteps::Step two = steps.next(bits << one.bits);
        coefficient += one.coefficients;
        skip(one.bits);
        if (coefficient + two.coefficients >= 64) continue;
        coefficient += two.coefficients;
        skip(two.bits);
      } else {
        // The block ends in this step, or in the midst of what the step says.
        const int ending = one.coefficients - CoefficientSteps::kEnd;
        const bool ends = ending >= 0 ? coefficient + ending < 64 : coefficient + one.coefficients == 64;
        if (ends && one.bits != 0) return skip(one.bits), true;
        if (!skip_coefficient(code, coefficient)) return false;
        if (coefficient >= 64) return coefficient == 64 || coefficient > CoefficientSteps::kEnd;
      }
    }
  }

 private:
  static constexpr int kMostDifferenceBits = 12;

  // One at a time.
  bool skip_coefficient(const HuffmanCode& code, int& coefficient) noexcept {
    const HuffmanCode::Symbol symbol = code.read(see());
    const int size = symbol.value & 15, run = symbol.value >> 4;
    coefficient += size == 0 && run != 15 ? CoefficientSteps::kEnd : run + 1;
    skip(symbol.length + size);
    return symbol.length != 0;
  }

  // F.2.2.1, EXTEND.
  static int extended(std::uint64_t bits, int size) noexcept {
    const int value = static_cast<int>(bits);
    return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
  }

  const std::uint8_t* bytes_;
  std::uint64_t at_;
};

}  // namespace headrace
