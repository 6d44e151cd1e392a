// The index stages of a plan (combine, filter, shuffle, take, skip, shard, repeat) composed to one function:
// (epoch, position in the epoch) -> (record, pass), O(1) and without state.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

class IndexMap {
 public:
  // `stages` are index stages only, in the order written. `seed` is the loader's. Where one is a filter, what it
  // keeps is found now, if it was not before: that reads the source, and throws what Selection::kept() does.
  IndexMap(std::uint64_t records, const std::vector<Stage>& stages, std::uint64_t seed);

  // Positions in an epoch.
  std::uint64_t size() const noexcept { return size_; }

  // Of a stream: the last record that positions up to `position` may have, the first that those from it on may,
  // and the record that must be there for `position` to be.
  std::uint64_t last_record(std::uint64_t position) const { return walk(&IndexStage::last_before, position); }
  std::uint64_t first_record(std::uint64_t position) const { return walk(&IndexStage::first_before, position); }
  std::uint64_t needed_record(std::uint64_t position) const { return walk(&IndexStage::needed_before, position); }

 private:
  friend class IndexCursor;

  std::uint64_t walk(std::uint64_t (IndexStage::*before)(std::uint64_t) const, std::uint64_t position) const;
  // Null: positions stay as they are.
  IndexStagePtr create_stage(const Stage& stage, std::uint64_t seed) const;

  std::vector<IndexStagePtr> stages_;
  std::uint64_t size_ = 0;
};

// Evaluates an IndexMap; has the stages' memories. One thread at a time. The map must outlive it.
class IndexCursor {
 public:
  explicit IndexCursor(const IndexMap& map);

  // `position` < map.size().
  Located locate(std::uint64_t epoch, std::uint64_t position) const {
    Located at{.record = position, .pass = epoch};
    for (std::size_t i = memories_.size(); i-- > 0;) at = map_->stages_[i]->locate(at, memories_[i].get());
    return at;
  }

 private:
  const IndexMap* map_;
  std::vector<std::unique_ptr<IndexMemory>> memories_;  // one a stage
};

}  // namespace headrace
