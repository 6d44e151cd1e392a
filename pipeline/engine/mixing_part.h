// What a loader that serves a part of the replicas must make of other replicas' examples: those that its own are
// mixed with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/mixer.h"
#include "headrace/pipeline/operations/machinery/pairing.h"

namespace headrace {

// Of one batch. Its examples are numbered from 0: those of the part, in order, then the guests, ascending by their
// number in the global batch.
class MixingPart {
 public:
  // A pair of examples of the part or its guests; `pair` is its number among those of the whole batch.
  struct Mixed {
    std::int64_t pair = 0, first = 0, second = 0;
  };

  // Finds guests and pairs for the examples [first, first + count) of a global batch of `examples`, which go
  // through `mixers` one after another.
  void select(const std::vector<Mixer>& mixers, const BatchKey& key, std::int64_t examples, std::int64_t first,
              std::int64_t count);

  void clear() noexcept { guests_.clear(); }

  std::span<const std::int64_t> guests() const noexcept { return guests_; }  // numbers in the global batch
  // Of the mixer of this number: the pairs that it must mix here.
  std::span<const Mixed> pairs(std::size_t mixer) const noexcept { return pairs_[mixer]; }

  // Guests there may be in batches of up to `examples`, of which a part has between `min_count` and `max_count`.
  static std::int64_t max_guests(std::size_t mixers, std::int64_t examples, std::int64_t min_count,
                                 std::int64_t max_count) noexcept;

 private:
  std::int64_t number_of(std::int64_t global) const noexcept;

  std::int64_t first_ = 0, count_ = 0;
  std::vector<std::int64_t> guests_;
  std::vector<std::vector<Mixed>> pairs_;  // one list a mixer
  std::vector<bool> needed_;               // of the examples of the global batch
};

}  // namespace headrace
