// The index stages of a plan (combine, filter, shuffle, take, skip, shard, repeat) as one function:
// (epoch, position in the epoch) -> (record, pass), O(1) and without state.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/devices/base/permutation.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// Which record, and the how manyth time over the whole run that its stage of the plan starts anew: the pass
// keys shuffles and random operations, so that a repeated record gets new random numbers.
struct Located {
  std::uint64_t record = 0;
  std::uint64_t pass = 0;
  bool operator==(const Located&) const = default;
};

class BitSelect;
class CombinedMap;
class CombinedCursor;

class IndexMap {
 public:
  // `stages` are index stages only, in the order written. `seed` is the loader's. Where one is a filter, what it
  // keeps is found now, if it was not before: that reads the source, and throws what Selection::kept() does.
  IndexMap(std::uint64_t records, const std::vector<Stage>& stages, std::uint64_t seed);

  // Positions in an epoch.
  std::uint64_t size() const noexcept { return size_; }

 private:
  friend class IndexCursor;
  enum class Kind { kShuffle, kRepeat, kSkip, kShard, kWithoutShard, kFilter, kShuffleWindow, kRanges, kCombine };
  struct Step {
    Kind kind;
    std::uint64_t size_before;  // positions before this stage
    std::uint64_t amount = 0;   // times, count, shards, or the window's size
    std::uint64_t index = 0;    // of the shard
    std::uint64_t key = 0;      // of the shuffle
    bool each_pass_anew = true;
    const BitSelect* kept = nullptr;  // of the filter; `owner` keeps it alive
    std::shared_ptr<const void> owner = {};
    std::shared_ptr<const CombinedMap> combined = {};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges = {};  // (positions before it, its first one)
  };

  void add(const Stage& stage, std::uint64_t seed);
  // Those without a branch of their own in add().
  bool add_other(const Stage& stage, std::uint64_t seed, Step& step);

  std::vector<Step> steps_;
  std::uint64_t size_ = 0;
};

// Evaluates an IndexMap; remembers the key schedule of the pass it was in. One thread at a time.
class IndexCursor {
 public:
  explicit IndexCursor(const IndexMap& map);
  IndexCursor(IndexCursor&&) noexcept;
  IndexCursor& operator=(IndexCursor&&) noexcept;
  ~IndexCursor();

  // `position` < map.size().
  Located locate(std::uint64_t epoch, std::uint64_t position);

 private:
  struct Keyed {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    Permutation permutation;
    std::uint64_t pass = kNone;
    std::uint64_t window = kNone;  // of a window shuffle
  };

  const Permutation& shuffle_of(std::size_t step, std::uint64_t pass);

  std::uint64_t shuffled_in_window(std::size_t step, std::uint64_t pass, std::uint64_t position);

  const IndexMap* map_;
  std::vector<Keyed> keyed_;                  // one a step; used by shuffles
  std::unique_ptr<CombinedCursor> combined_;  // where the first step combines
};

}  // namespace headrace
