// Counter-based random numbers: the same key gives the same numbers on any thread, in any order.
//
// Philox4x32-10 after Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011). The 192 bits of key and counter hold (seed, epoch, record, operation, block) side by
// side, so two different keys never share a block.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t record = 0;     // below 2^48
  std::uint16_t operation = 0;  // position of the operation in the plan
};

class Philox {
 public:
  using Block = std::array<std::uint32_t, 4>;

  explicit Philox(const RandomKey& key) noexcept
      : key_{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)},
        counter_(counter_of(key)) {}
  // `first`: the key's first four numbers, computed elsewhere: round10() of counter_of(key).
  Philox(const RandomKey& key, const Block& first) noexcept : Philox(key) {
    block_ = first;
    ++counter_[0];
    used_ = 0;
  }

  // Returns the counter of a key's first block. The seed is round10()'s key.
  static constexpr Block counter_of(const RandomKey& key) noexcept {
    return {0, static_cast<std::uint32_t>(key.record),
            static_cast<std::uint32_t>((key.record >> 32) << 16) | key.operation, key.epoch};
  }

  // Returns a number uniform over all 2^32 values.
  std::uint32_t next_u32() noexcept {
    if (used_ == 4) {
      block_ = round10(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[static_cast<std::size_t>(used_++)];
  }

  // Returns a number uniform in [0, 1), 24 bits.
  float uniform() noexcept { return static_cast<float>(next_u32() >> 8) * 0x1p-24F; }

  // Returns a number uniform in [0, bound). Multiply-shift: bias below bound / 2^32. REQUIRES: bound > 0.
  std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(next_u32()) * bound) >> 32);
  }

  // Returns an unbiased number uniform in [0, bound). Draws again if the last, incomplete part of the 2^32 values
  // was hit (Lemire, "Fast random integer generation in an interval", TOMACS 2019). REQUIRES: bound > 0.
  std::uint32_t exactly_below(std::uint32_t bound) noexcept {
    const std::uint32_t shorter = -bound % bound;  // 2^32 mod bound
    std::uint64_t product = 0;
    do {
      product = static_cast<std::uint64_t>(next_u32()) * bound;
    } while (static_cast<std::uint32_t>(product) < shorter);
    return static_cast<std::uint32_t>(product >> 32);
  }

  // Applies the raw bijection: `counter` -> four random words. For kernels that compute many blocks at once.
  static constexpr Block round10(Block counter, std::array<std::uint32_t, 2> key) noexcept {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                 static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    return counter;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  Block counter_;
  Block block_{};
  int used_ = 4;
};

// Mixes two 64-bit seeds into one, for a stage's own seed under the run's seed (splitmix64 finaliser).
constexpr std::uint64_t mix_seed(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t z = a + 0x9E3779B97F4A7C15ULL * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace headrace
