// A keyed bijection over [0, size): position -> index without an array of indices.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "headrace/devices/base/rng.h"

namespace headrace {

// A Feistel network over the smallest 2^bits >= size; values outside [0, size) walk the cycle until they are
// inside (fewer than two rounds of walking on average). The two halves differ by a bit where `bits` is odd.
class Permutation {
 public:
  Permutation() = default;
  Permutation(std::uint64_t size, std::uint64_t key) noexcept : size_(size) {
    const int bits = size > 1 ? static_cast<int>(std::bit_width(size - 1)) : 0;
    low_bits_ = bits - bits / 2;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    high_mask_ = (std::uint64_t{1} << (bits / 2)) - 1;
    rounds_ = bits < kSmallBits ? kMaxRounds : kRounds;
    for (std::size_t i = 0; i < rounds_; ++i) keys_[i] = mix_seed(key, i);
  }

  std::uint64_t size() const noexcept { return size_; }

  // `position` < size().
  std::uint64_t operator()(std::uint64_t position) const noexcept {
    std::uint64_t value = position;
    do {
      value = encrypt(value);
    } while (value >= size_);
    return value;
  }

 private:
  // Halves of few bits take more rounds to mix: with 6, five indices show a bias.
  static constexpr std::size_t kRounds = 6;
  static constexpr std::size_t kMaxRounds = 12;
  static constexpr int kSmallBits = 12;

  static std::uint64_t mix(std::uint64_t half, std::uint64_t key) noexcept {
    std::uint64_t z = (half + key) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 32)) * 0x94D049BB133111EBULL;
    return z >> 32;
  }

  std::uint64_t encrypt(std::uint64_t value) const noexcept {
    std::uint64_t low = value & low_mask_;
    std::uint64_t high = value >> low_bits_;
    for (std::size_t round = 0; round < rounds_; round += 2) {
      high ^= mix(low, keys_[round]) & high_mask_;
      low ^= mix(high, keys_[round + 1]) & low_mask_;
    }
    return (high << low_bits_) | low;
  }

  std::uint64_t size_ = 1;
  int low_bits_ = 0;
  std::uint64_t low_mask_ = 0;
  std::uint64_t high_mask_ = 0;
  std::size_t rounds_ = kRounds;
  std::array<std::uint64_t, kMaxRounds> keys_{};
};

}  // namespace headrace
