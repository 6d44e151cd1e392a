// The index stages of a plan (combine, filter, shuffle, take, skip, select, shard, repeat, batch order) composed
// into one stateless O(1) function: (epoch, position in the epoch) -> (record, pass).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/stage.h"

namespace headrace {

class IndexMap {
 public:
  // `stages` are index stages only, in the order written. `seed` is the loader's. Runs filters that have not run
  // yet, which reads the source and throws as Stage::index() of such a filter does.
  IndexMap(std::uint64_t records, const std::vector<StagePtr>& stages, std::uint64_t seed);

  // Returns the number of positions in an epoch.
  std::uint64_t size() const noexcept { return size_; }

  // For a stream: return the last record that positions up to `position` may have, the first record that later
  // ones may have, `position` included, and the record that must exist for `position` to exist.
  std::uint64_t last_record(std::uint64_t position) const { return walk(&IndexStage::last_before, position); }
  std::uint64_t first_record(std::uint64_t position) const { return walk(&IndexStage::first_before, position); }
  std::uint64_t needed_record(std::uint64_t position) const { return walk(&IndexStage::needed_before, position); }

 private:
  friend class IndexCursor;

  std::uint64_t walk(std::uint64_t (IndexStage::*before)(std::uint64_t) const, std::uint64_t position) const;

  std::vector<IndexStagePtr> stages_;
  std::uint64_t size_ = 0;
};

// Evaluates an IndexMap; holds the stages' memories. Used by one thread at a time. REQUIRES: the map outlives it.
class IndexCursor {
 public:
  explicit IndexCursor(const IndexMap& map);

  // REQUIRES: `position` < map.size().
  Located locate(std::uint64_t epoch, std::uint64_t position) const {
    Located at{.record = position, .pass = epoch};
    for (std::size_t i = memories_.size(); i-- > 0;) at = map_->stages_[i]->locate(at, memories_[i].get());
    return at;
  }
  // Writes the numbers that enumerate() stages gave to the position that was located last, each at its place.
  void write_numbers(std::uint64_t* numbers) const {
    for (const auto& memory : memories_) {
      if (memory != nullptr) memory->write_numbers(numbers);
    }
  }

 private:
  const IndexMap* map_;
  std::vector<std::unique_ptr<IndexMemory>> memories_;  // one per stage
};

}  // namespace headrace
