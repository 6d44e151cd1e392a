// A keyed bijection over [0, size): position -> index in O(1), with bounded memory whatever the size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/devices/base/rng.h"

namespace headrace {

// Up to kMaxTable indices: a table shuffled by Fisher and Yates' method with unbiased draws, so every order is
// equally likely. Beyond: a Feistel network over the smallest 2^bits >= size; values outside [0, size) walk the
// cycle until they are inside (fewer than two rounds of walking on average). The two halves differ by a bit if
// `bits` is odd. A network of few bits is not good enough for small sizes: it makes some orders of 7 almost three
// times as often as others, and of a power of two only half of them.
class Permutation {
 public:
  static constexpr std::uint64_t kMaxTable = 4096;

  Permutation() = default;
  Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
    if (size <= kMaxTable) {
      shuffle_table(key);
    } else {
      key_network(key);
    }
  }

  std::uint64_t size() const noexcept { return size_; }

  // REQUIRES: `position` < size().
  std::uint64_t operator()(std::uint64_t position) const noexcept {
    if (!table_.empty()) return table_[position];
    std::uint64_t value = position;
    do {
      value = encrypt(value);
    } while (value >= size_);
    return value;
  }

 private:
  static constexpr std::size_t kRounds = 6;

  void shuffle_table(std::uint64_t key) {
    Philox random({.seed = key});
    table_.resize(size_);
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const std::size_t other = random.exactly_below(static_cast<std::uint32_t>(i + 1));
      table_[i] = table_[other];
      table_[other] = static_cast<std::uint16_t>(i);
    }
  }

  void key_network(std::uint64_t key) noexcept {
    const int bits = static_cast<int>(std::bit_width(size_ - 1));
    low_bits_ = bits - bits / 2;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    high_mask_ = (std::uint64_t{1} << (bits / 2)) - 1;
    for (std::size_t i = 0; i < kRounds; ++i) keys_[i] = mix_seed(key, i);
  }

  static std::uint64_t mix(std::uint64_t half, std::uint64_t key) noexcept {
    std::uint64_t z = (half + key) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 32)) * 0x94D049BB133111EBULL;
    return z >> 32;
  }

  std::uint64_t encrypt(std::uint64_t value) const noexcept {
    std::uint64_t low = value & low_mask_;
    std::uint64_t high = value >> low_bits_;
    for (std::size_t round = 0; round < kRounds; round += 2) {
      high ^= mix(low, keys_[round]) & high_mask_;
      low ^= mix(high, keys_[round + 1]) & low_mask_;
    }
    return (high << low_bits_) | low;
  }

  std::uint64_t size_ = 1;
  std::vector<std::uint16_t> table_;  // empty: the network
  int low_bits_ = 0;
  std::uint64_t low_mask_ = 0;
  std::uint64_t high_mask_ = 0;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace headrace
