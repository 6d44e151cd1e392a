// Reads the entropy-coded data of a JPEG (ITU-T T.81, F.2.2) from bytes whose stuffed zeros were removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/pipeline/decoders/jpeg_index/ac_skip_table.h"
#include "headrace/pipeline/decoders/jpeg_index/huffman_code.h"

namespace headrace {

// A position in bits, which may be read a good way beyond their end.
class EntropyBitReader {
 public:
  static constexpr int kPeekBits = 57;  // bits that peek() returns at least
  static_assert(2 * AcSkipTable::kMaxBits <= kPeekBits, "two steps are taken from one peek");
  static constexpr std::size_t kSlack = 320;  // readable bytes after the end: more than a block takes

  EntropyBitReader(const std::uint8_t* bytes, std::uint64_t at) : bytes_(bytes), at_(at) {}

  std::uint64_t at() const noexcept { return at_; }
  void skip(int bits) noexcept { at_ += static_cast<std::uint64_t>(bits); }
  // The next bits, the first in the highest place.
  std::uint64_t peek() const noexcept { return peek(bytes_, at_); }
  static std::uint64_t peek(const std::uint8_t* bytes, std::uint64_t at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at / 8, sizeof word);
    return __builtin_bswap64(word) << at % 8;
  }

  // The DC difference that a block begins with (F.2.2.1). False if there is none.
  bool read_dc_difference(const HuffmanCode& code, int& difference) noexcept {
    const std::uint64_t bits = peek();
    const HuffmanCode::Symbol size = code.read(bits);
    if (size.length == 0 || size.value > kMaxDifferenceBits) return false;
    difference = size.value == 0 ? 0 : extended(bits << size.length >> (64 - size.value), size.value);
    skip(size.length + size.value);
    return true;
  }

  // Skips the 63 AC coefficients of a block (F.2.2.2). False if they are damaged.
  bool skip_ac(const HuffmanCode& code, const AcSkipTable& steps) noexcept {
    for (int coefficient = 1;;) {
      const std::uint64_t bits = peek();
      const AcSkipTable::Step one = steps.next(bits);
      if (coefficient + one.coefficients < 64) {
        const AcSkipTable::Step two = steps.next(bits << one.bits);
        coefficient += one.coefficients;
        skip(one.bits);
        if (coefficient + two.coefficients >= 64) continue;
        coefficient += two.coefficients;
        skip(two.bits);
      } else {
        // The block ends in this step, or in the middle of it.
        const int ending = one.coefficients - AcSkipTable::kEnd;
        const bool ends = ending >= 0 ? coefficient + ending < 64 : coefficient + one.coefficients == 64;
        if (ends && one.bits != 0) return skip(one.bits), true;
        if (!skip_ac_coefficient(code, coefficient)) return false;
        if (coefficient >= 64) return coefficient == 64 || coefficient > AcSkipTable::kEnd;
      }
    }
  }

 private:
  static constexpr int kMaxDifferenceBits = 12;

  bool skip_ac_coefficient(const HuffmanCode& code, int& coefficient) noexcept {
    const HuffmanCode::Symbol symbol = code.read(peek());
    const int size = symbol.value & 15, run = symbol.value >> 4;
    coefficient += size == 0 && run != 15 ? AcSkipTable::kEnd : run + 1;
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
