// Reads the entropy-coded data of a JPEG, block by block (ITU-T T.81, F.2.2).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "headrace/pipeline/decoders/jpeg_scan/ac_tables.h"
#include "headrace/pipeline/decoders/jpeg_scan/huffman_code.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_frame.h"

namespace headrace {

// The AC coefficients of a component: their code, and the tables made from it.
struct AcCode {
  const HuffmanCode& code;
  const AcReadTable& read;
  const AcSkipTable& skip;
};

// A position in bytes without stuffed zeros. Reads a block beyond their end (UnstuffedBytes::kSlack): look at at()
// after each. A copy is cheap, and faster than a reader that lives in memory.
class EntropyBitReader {
 public:
  EntropyBitReader() = default;  // no position
  EntropyBitReader(const std::uint8_t* bytes, std::uint64_t at) noexcept : bytes_(bytes) { seek(at); }

  std::uint64_t at() const noexcept {
    return static_cast<std::uint64_t>(next_ - bytes_) * 8 - static_cast<std::uint64_t>(held_);
  }

  // Reads the DC difference at the start of a block (F.2.2.1). Returns false if there is none.
  bool read_dc_difference(const HuffmanCode& code, int& difference) noexcept {
    fill();
    const HuffmanCode::Symbol size = code.read(buffer_);
    if (size.length == 0 || size.value > kMaxDifferenceBits) return false;
    difference = extended(buffer_ << size.length, size.value);
    skip(size.length + size.value);
    return true;
  }

  // Reads the 63 AC coefficients of a block (F.2.2.2) into `block`, 64 coefficients in row-major order, where all
  // but the first are zero. Returns false if they are damaged.
  bool read_ac(const AcCode& ac, std::int16_t* block) noexcept {
    static_assert(kReadSteps * AcReadTable::kMaxBits <= kFilled);
    for (unsigned place = 1;;) {
      fill();
      AcReadTable::Step step;
      for (int i = 0; i < kReadSteps && place < 64; ++i) {
        step = ac.read.next(buffer_);
        block[kRowMajor[place + step.first_at]] = step.first;
        block[kRowMajor[place + step.second_at]] = step.second;
        place += step.advance;
        skip(step.bits);
      }
      if (place < 64) continue;
      if (AcPlace::is_complete(place)) return true;
      // The symbol is longer than the table knows, or the block is full after the first of two.
      const AcSymbol symbol = take_back(step, ac.code, place);
      const int value = extended(buffer_ << symbol.length, symbol.size);
      if (!pass(symbol, place)) return false;
      if (symbol.ends) return true;
      block[kRowMajor[place - 1]] = static_cast<std::int16_t>(value);
      if (place == 64) return true;
    }
  }

  // Skips the 63 AC coefficients of a block. Returns false if read_ac() does.
  bool skip_ac(const AcCode& ac) noexcept {
    static_assert(kSkipSteps * AcSkipTable::kMaxBits <= kFilled);
    for (unsigned place = 1;;) {
      fill();
      AcSkipTable::Step step;
      for (int i = 0; i < kSkipSteps && place < 64; ++i) {
        step = ac.skip.next(buffer_);
        place += step.advance;
        skip(step.bits);
      }
      if (place < 64) continue;
      if (AcPlace::is_complete(place)) return true;
      const AcSymbol symbol = take_back(step, ac.code, place);
      if (!pass(symbol, place)) return false;
      if (symbol.ends || place == 64) return true;
    }
  }

 private:
  static constexpr int kMaxDifferenceBits = 12;
  static constexpr int kFilled = 56;                    // minimum number of bits after fill()
  static constexpr int kReadSteps = 5, kSkipSteps = 2;  // between two of them

  // Undoes a step that led beyond the block or nowhere; returns the symbol that it began with.
  template <typename Step>
  AcSymbol take_back(const Step& step, const HuffmanCode& code, unsigned& place) noexcept {
    place -= step.advance;
    if (step.bits != 0) seek(at() - step.bits);
    fill();
    return AcSymbol::of(code.read(buffer_));
  }

  // Passes one symbol and the bits of its coefficient; `place` is then after the coefficient. Returns false if
  // there is no such symbol, or no such place.
  bool pass(const AcSymbol& symbol, unsigned& place) noexcept {
    skip(symbol.length + symbol.size);
    if (!symbol.ends) place += static_cast<unsigned>(symbol.run + 1);
    return symbol.length != 0 && place <= 64;
  }

  void seek(std::uint64_t at) noexcept {
    const int passed = static_cast<int>(at % 8);
    next_ = bytes_ + at / 8;
    buffer_ = load(next_) << passed;
    next_ += kFilled / 8;
    held_ = kFilled - passed;
  }
  // Beyond the `held_` bits the buffer may hold some that follow: filling writes the same ones there again.
  void fill() noexcept {
    buffer_ |= load(next_) >> held_;
    next_ += (63 - held_) / 8;
    held_ |= kFilled;
  }
  void skip(int bits) noexcept {
    buffer_ <<= bits;
    held_ -= bits;
  }
  static std::uint64_t load(const std::uint8_t* from) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    return __builtin_bswap64(word);
  }

  const std::uint8_t* bytes_ = nullptr;
  const std::uint8_t* next_ = nullptr;
  std::uint64_t buffer_ = 0;  // the next bits, the first in the highest place
  int held_ = 0;              // of them are known to be there
};

}  // namespace headrace
