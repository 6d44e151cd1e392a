// Entropy-coded data of a JPEG, bit by bit: with and without the zero stuffed after each 0xFF (ITU-T T.81, B.1.1.5
// and F.1.2.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/jpeg_index/huffman_code.h"

namespace headrace {

// Entropy-coded data of a JPEG without the zeros stuffed after each 0xFF (ITU-T T.81, B.1.1.5). A reusable buffer.
class UnstuffedBytes {
 public:
  // Unstuffs `coded` up to the first marker.
  void assign(std::span<const std::byte> coded);

  // Returns the bytes, followed by EntropyBitReader::kSlack zeros.
  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return size_; }
  std::uint64_t bits() const noexcept { return std::uint64_t{size_} * 8; }
  // Returns the position of byte `at` in the coded bytes. REQUIRES: at <= size().
  std::size_t coded_place(std::size_t at) const noexcept;

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  std::vector<std::size_t> stuffed_;  // the bytes before which a stuffed zero was removed
};

// Reads the entropy-coded data of a JPEG (ITU-T T.81, F.2.2) from bytes without stuffed zeros. A position in bits;
// reading well beyond their end is allowed.
class EntropyBitReader {
 public:
  static constexpr int kPeekBits = 57;  // minimum number of bits that peek() returns
  static_assert(2 * AcSkipTable::kMaxBits <= kPeekBits, "two steps are taken from one peek");
  static constexpr std::size_t kSlack = 320;  // readable bytes after the end: more than a block takes

  EntropyBitReader(const std::uint8_t* bytes, std::uint64_t at) : bytes_(bytes), at_(at) {}

  std::uint64_t at() const noexcept { return at_; }
  void skip(int bits) noexcept { at_ += static_cast<std::uint64_t>(bits); }
  // Returns the next bits, the first in the highest place.
  std::uint64_t peek() const noexcept { return peek(bytes_, at_); }
  static std::uint64_t peek(const std::uint8_t* bytes, std::uint64_t at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at / 8, sizeof word);
    return __builtin_bswap64(word) << at % 8;
  }

  // Reads the DC difference at the start of a block (F.2.2.1). Returns false if there is none.
  bool read_dc_difference(const HuffmanCode& code, int& difference) noexcept {
    const std::uint64_t bits = peek();
    const HuffmanCode::Symbol size = code.read(bits);
    if (size.length == 0 || size.value > kMaxDifferenceBits) return false;
    difference = size.value == 0 ? 0 : extended(bits << size.length >> (64 - size.value), size.value);
    skip(size.length + size.value);
    return true;
  }

  // Skips the 63 AC coefficients of a block (F.2.2.2). Returns false if they are damaged.
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

// Writes the entropy-coded data of a JPEG, with a zero stuffed after each 0xFF (ITU-T T.81, F.1.2.3). Appends to
// bytes already allocated: call reserve() before put().
class EntropyBitWriter {
 public:
  explicit EntropyBitWriter(std::vector<std::uint8_t>& bytes) : bytes_(bytes), size_(bytes.size()) {}

  // Reserves room for this many bits, even if each byte is 0xFF.
  void reserve(std::uint64_t bits) {
    const std::size_t wanted = size_ + bits / 4 + 4 * sizeof(std::uint64_t);
    if (bytes_.size() < wanted) bytes_.resize(wanted + wanted / 2);
  }

  // Writes the lowest `count` of `bits`. REQUIRES: count <= 32; the other bits are 0.
  void put(std::uint64_t bits, int count) noexcept {
    pending_ = pending_ << count | bits;
    held_ += count;
    if (held_ < 32) return;
    held_ -= 32;
    put_word(static_cast<std::uint32_t>(pending_ >> held_));
  }

  // Pads the last byte with ones and shrinks the buffer to the bytes written.
  void finish() {
    reserve(64);
    const int padding = (8 - held_ % 8) % 8;
    pending_ = pending_ << padding | ((1U << padding) - 1);
    for (held_ += padding; held_ > 0;) put_byte(static_cast<std::uint8_t>(pending_ >> (held_ -= 8)));
    bytes_.resize(size_);
  }

 private:
  void put_word(std::uint32_t word) noexcept {
    const bool has_ones = ((~word - 0x01010101U) & word & 0x80808080U) != 0;
    if (!has_ones) {
      const std::uint32_t ordered = __builtin_bswap32(word);
      std::memcpy(bytes_.data() + size_, &ordered, sizeof ordered);
      size_ += sizeof ordered;
      return;
    }
    for (int shift = 24; shift >= 0; shift -= 8) put_byte(static_cast<std::uint8_t>(word >> shift));
  }
  void put_byte(std::uint8_t byte) noexcept {
    bytes_[size_++] = byte;
    if (byte == 0xFF) bytes_[size_++] = 0;
  }

  std::vector<std::uint8_t>& bytes_;
  std::size_t size_;
  std::uint64_t pending_ = 0;  // its lowest held_ bits are still to be written
  int held_ = 0;               // below 32
};

}  // namespace headrace
