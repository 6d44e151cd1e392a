// Which examples make batch number n of the stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {

// One thread at a time.
class BatchSchedule {
 public:
  // ConfigError where the batches could not be numbered.
  BatchSchedule(const StreamPlan& plan, std::uint64_t seed, std::uint64_t epochs);
  BatchSchedule(const BatchSchedule&) = delete;
  BatchSchedule& operator=(const BatchSchedule&) = delete;

  std::uint64_t steps_per_epoch() const noexcept { return steps_; }
  // Examples of the largest batch: no more than an epoch has, and 1 where it has none.
  std::int64_t largest_batch() const noexcept {
    return static_cast<std::int64_t>(std::clamp<std::uint64_t>(map_.size(), 1, global_));
  }
  std::uint64_t examples_per_epoch() const noexcept { return std::min(steps_ * global_, map_.size()); }
  // Batches of the whole run.
  std::uint64_t batches() const noexcept { return steps_ * epochs_; }

  // `sequence` < batches().
  BatchPosition position(std::uint64_t sequence) const noexcept;
  // Record and pass of the batch's examples from `position.first_row` on, in order.
  void locate(const BatchPosition& position, std::span<std::uint64_t> records, std::span<std::uint64_t> passes);
  // Of one example of the batch, by its number in it.
  Located locate(const BatchPosition& position, std::int64_t example);
  // Some example of the epoch. May be called by any thread at any time; slow.
  Located draw(std::uint64_t epoch, Philox& random) const;

 private:
  IndexMap map_;
  IndexCursor cursor_;
  std::uint64_t global_;
  std::uint64_t steps_;
  std::uint64_t epochs_;
};

}  // namespace headrace
