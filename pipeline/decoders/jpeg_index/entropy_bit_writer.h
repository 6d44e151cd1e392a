// Writes the entropy-coded data of a JPEG, with a zero stuffed after each 0xFF (ITU-T T.81, F.1.2.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace headrace {

// Appends to bytes that have room already: call reserve() before put().
class EntropyBitWriter {
 public:
  explicit EntropyBitWriter(std::vector<std::uint8_t>& bytes) : bytes_(bytes), size_(bytes.size()) {}

  // Room for this many bits, even if each byte is 0xFF.
  void reserve(std::uint64_t bits) {
    const std::size_t wanted = size_ + bits / 4 + 4 * sizeof(std::uint64_t);
    if (bytes_.size() < wanted) bytes_.resize(wanted + wanted / 2);
  }

  // The lowest `count` <= 32 of `bits`; the others are 0.
  void put(std::uint64_t bits, int count) noexcept {
    pending_ = pending_ << count | bits;
    held_ += count;
    if (held_ < 32) return;
    held_ -= 32;
    put_word(static_cast<std::uint32_t>(pending_ >> held_));
  }

  // Pads the last byte with ones and shrinks the bytes to what was written.
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
