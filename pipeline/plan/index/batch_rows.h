// The places of each batch's rows among the positions before batch().
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/plan/combination.h"

namespace headrace {

// Batches have numbers: of a combination those of its first part, then those of the second, and so on, as their
// rows have positions.
class BatchRows {
 public:
  // Cuts `positions` positions into batches.
  BatchRows(std::uint64_t positions, const BatchOptions& batch) { add(positions, batch); }
  // Takes the batches of all parts, as each has them before the stages on its batches. Runs filters that have not
  // run yet. REQUIRES: whole batches are combined.
  explicit BatchRows(const Combination& combination) { add(combination); }

  // Returns the number of batches.
  std::uint64_t count() const noexcept { return runs_.back().first_batch + runs_.back().batches; }
  // Returns the examples of a full batch, of the largest kind.
  std::uint64_t full() const noexcept { return full_; }
  // Returns the examples of the largest batch, at most those that there are.
  std::uint64_t largest() const noexcept { return largest_; }
  // Returns whether all batches are full.
  bool even() const noexcept { return even_; }
  // Return the first position of a batch, and its number of rows. O(log of the parts). REQUIRES: `batch` <
  // count().
  std::uint64_t first_of(std::uint64_t batch) const noexcept;
  std::uint64_t examples_of(std::uint64_t batch) const noexcept;

 private:
  // Consecutive batches of one size, but for the last.
  struct Run {
    std::uint64_t first_batch = 0, batches = 0;
    std::uint64_t first_position = 0, positions = 0;
    std::uint64_t full = 1;
  };

  void add(std::uint64_t positions, const BatchOptions& batch);
  void add(const Combination& combination);
  const Run& run_of(std::uint64_t batch) const noexcept;

  std::vector<Run> runs_;  // one or more
  std::uint64_t full_ = 0, largest_ = 0;
  bool even_ = true;
};

// Returns the stages on the batches' numbers with, as the first, the combination of them; just `stages` if
// `combined` is null. Runs filters that have not run yet.
std::vector<StagePtr> stages_on_batches(const Combination* combined, const std::vector<StagePtr>& stages);

}  // namespace headrace
