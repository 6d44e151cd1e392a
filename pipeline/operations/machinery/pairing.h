// Pairs the examples of a global batch for mixing.
#pragma once

#include <cstdint>

#include "headrace/devices/base/permutation.h"
#include "headrace/devices/base/rng.h"

namespace headrace {

// The key of a batch's random draws: the run's seed and the batch's place in the stream.
struct BatchKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
};

struct Pair {
  std::int64_t first = 0, second = 0;  // positions in the global batch, always different
  bool operator==(const Pair&) const = default;
};

// Each example is in one pair, except one if their number is odd. A function of the key, the operation's number
// and the batch's real examples: independent of replicas.
class Pairing {
 public:
  Pairing(const BatchKey& key, std::uint16_t operation, std::int64_t examples)
      : key_(key),
        operation_(operation),
        order_(static_cast<std::uint64_t>(examples),
               mix_seed(mix_seed(mix_seed(key.seed, key.epoch), key.step), kOrder + operation)) {}

  static std::int64_t pairs_of(std::int64_t examples) noexcept { return examples / 2; }

  // REQUIRES: `pair` < pairs_of(examples).
  Pair operator[](std::int64_t pair) const noexcept {
    const auto at = static_cast<std::uint64_t>(2 * pair);
    return {.first = static_cast<std::int64_t>(order_(at)), .second = static_cast<std::int64_t>(order_(at + 1))};
  }

  // Returns the random numbers of a pair.
  Philox random(std::int64_t pair) const noexcept {
    return Philox({.seed = mix_seed(mix_seed(key_.seed, kDraws), key_.step),
                   .epoch = static_cast<std::uint32_t>(key_.epoch),
                   .record = static_cast<std::uint64_t>(pair),
                   .operation = operation_});
  }

 private:
  // Keep the draws of pairs apart from those of records.
  static constexpr std::uint64_t kOrder = 0x7061697273000000;
  static constexpr std::uint64_t kDraws = 0x6D69786564000000;

  BatchKey key_;
  std::uint16_t operation_;
  Permutation order_;
};

}  // namespace headrace
