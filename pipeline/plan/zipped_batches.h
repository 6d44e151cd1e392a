// The order of a dataset that takes part in zip(), of records or of whole batches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/pipeline/plan/index/batch_rows.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// The batches of zip(): batch n holds the n-th batches of all datasets side by side.
struct ZippedBatches {
  BatchOptions batch;
  std::uint64_t examples = 0;  // of an epoch
};

// Returns the batches of these datasets' zip(), which end with the shortest. Looks at the numbers of all batches
// if some are smaller. Throws ConfigError if the n-th batches differ in size, or a smaller one is followed by
// others. REQUIRES: all plans have batches and none is shuffled.
ZippedBatches zip_batches(const std::vector<StreamPlan>& plans, bool strict);

// Finds the records of a dataset in zip(). Immutable and thread-safe; it walks the stages anew for each position.
class ZippedPositions {
 public:
  // `full` is the number of examples of each of its batches but the last; std::nullopt: it has no batches.
  ZippedPositions(const StreamPlan& plan, std::optional<std::uint64_t> full);

  // Returns the number of positions, as if there were no batches.
  std::uint64_t size() const noexcept { return map_.size(); }
  // Returns the record at a position of the zipped dataset.
  std::uint64_t record_at(std::uint64_t position) const { return locate(position, nullptr); }
  // Writes the numbers of the part's enumerate() stages at the position.
  void write_numbers(std::uint64_t position, std::uint64_t* numbers) const { locate(position, numbers); }

 private:
  struct Batches {
    BatchRows rows;
    IndexMap order;
    std::uint64_t full;
  };

  std::uint64_t locate(std::uint64_t position, std::uint64_t* numbers) const;

  IndexMap map_;
  std::optional<Batches> batches_;  // std::nullopt: positions are those of the map
};

}  // namespace headrace
