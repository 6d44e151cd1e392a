// The first random numbers of the records of a block, drawn together, which takes a fraction of the time of
// drawing them one by one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/devices/base/rng.h"

namespace headrace {

// The first random numbers of some operations for each record of a block. Belongs to one thread.
class DrawnAhead {
 public:
  static constexpr std::size_t kRecords = 64;  // of a block, at most

  // Draws for these operations and records, and forgets what was drawn before. REQUIRES: at most kRecords records,
  // with a pass each; `operations` outlives what is drawn.
  void draw(std::uint64_t seed, std::span<const std::uint16_t> operations, std::span<const std::uint64_t> records,
            std::span<const std::uint64_t> passes);

  // Returns the random numbers of `key`, whose record is the block's `row`-th if they were drawn ahead.
  Philox random(const RandomKey& key, std::size_t row) const noexcept {
    if (row < drawn_ && seed_ == key.seed && records_[row] == key.record && passes_[row] == key.epoch) {
      for (std::size_t i = 0; i < operations_.size(); ++i) {
        if (operations_[i] == key.operation) return Philox(key, blocks_[i * kRecords + row]);
      }
    }
    return Philox(key);
  }

 private:
  std::uint64_t seed_ = 0;
  std::span<const std::uint16_t> operations_;
  std::size_t drawn_ = 0;
  std::array<std::uint64_t, kRecords> records_;
  std::array<std::uint32_t, kRecords> passes_;
  std::vector<Philox::Block> blocks_;  // kRecords for each operation
};

}  // namespace headrace
