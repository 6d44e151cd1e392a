// The other replicas' examples that a loader of a part of the replicas must make, because its own are mixed with
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/mixer.h"
#include "headrace/pipeline/operations/machinery/pairing.h"

namespace headrace {

// The part of one batch. Its examples are numbered from 0: those of the part, in order, then the guests, ascending
// by their number in the global batch.
class MixingPart {
 public:
  // A pair of examples of the part or its guests; `pair` is its number in the whole batch.
  struct Mixed {
    std::int64_t pair = 0, first = 0, second = 0;
  };

  // Finds guests and pairs for the examples [first, first + count) of a global batch of `examples`, to which
  // `mixers` are applied one after another.
  void select(const std::vector<Mixer>& mixers, const BatchKey& key, std::int64_t examples, std::int64_t first,
              std::int64_t count);

  void clear() noexcept { guests_.clear(); }

  std::span<const std::int64_t> guests() const noexcept { return guests_; }  // numbers in the global batch
  // Returns the pairs that the mixer with this zero-based index must mix here.
  std::span<const Mixed> pairs(std::size_t mixer) const noexcept { return pairs_[mixer]; }

  // Returns the maximum of guests in batches of up to `examples`, of which a part has `min_count` to `max_count`.
  static std::int64_t max_guests(std::size_t mixers, std::int64_t examples, std::int64_t min_count,
                                 std::int64_t max_count) noexcept;

 private:
  std::int64_t number_of(std::int64_t global) const noexcept;

  std::int64_t first_ = 0, count_ = 0;
  std::vector<std::int64_t> guests_;
  std::vector<std::vector<Mixed>> pairs_;  // one list per mixer
  std::vector<bool> needed_;               // of the examples of the global batch
};

}  // namespace headrace
