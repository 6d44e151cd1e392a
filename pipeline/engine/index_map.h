// The index stages of a plan (shuffle, take, skip, shard, repeat) as one function:
// (epoch, position in the epoch) -> (record, pass), O(1) and without state.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/engine/permutation.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

// Which record, and the how manyth time over the whole run that its stage of the plan starts anew: the pass
// keys shuffles and random operations, so that a repeated record gets new random numbers.
struct Located {
  std::uint64_t record = 0;
  std::uint64_t pass = 0;
  bool operator==(const Located&) const = default;
};

class IndexMap {
 public:
  // `stages` are index stages only, in the order written. `seed` is the loader's.
  IndexMap(std::uint64_t records, const std::vector<Stage>& stages, std::uint64_t seed);

  // Positions in an epoch.
  std::uint64_t size() const noexcept { return size_; }

 private:
  friend class IndexCursor;
  enum class Kind { kShuffle, kRepeat, kSkip, kShard, kWithoutShard };
  struct Step {
    Kind kind;
    std::uint64_t size_before;  // positions before this stage
    std::uint64_t amount = 0;   // times, count, or shards
    std::uint64_t index = 0;    // of the shard
    std::uint64_t key = 0;      // of the shuffle
    bool each_pass_anew = true;
  };

  void add(const Stage& stage, std::uint64_t seed);

  std::vector<Step> steps_;
  std::uint64_t size_ = 0;
};

// Evaluates an IndexMap; remembers the key schedule of the pass it was in. One thread at a time.
class IndexCursor {
 public:
  explicit IndexCursor(const IndexMap& map);

  // `position` < map.size().
  Located locate(std::uint64_t epoch, std::uint64_t position);

 private:
  struct Keyed {
    Permutation permutation;
    std::uint64_t pass = 0;
  };

  const IndexMap* map_;
  std::vector<Keyed> keyed_;  // one a step; used by shuffles
};

}  // namespace headrace
