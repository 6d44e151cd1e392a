// Which examples make batch number n of the stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {

// One thread at a time; what is the run's as a whole may be asked by any. A stream counts as one of
// kUnknownRecords until end_at() is called.
class BatchSchedule {
 public:
  // ConfigError where the batches could not be numbered. `plan` must outlive this.
  BatchSchedule(const StreamPlan& plan, std::uint64_t seed, std::uint64_t epochs);
  BatchSchedule(const BatchSchedule&) = delete;
  BatchSchedule& operator=(const BatchSchedule&) = delete;

  std::uint64_t steps_per_epoch() const noexcept { return steps_; }
  // Examples of the largest batch: no more than an epoch has, and 1 where it has none.
  std::int64_t largest_batch() const noexcept {
    return static_cast<std::int64_t>(std::clamp<std::uint64_t>(size_, 1, global_));
  }
  std::uint64_t examples_per_epoch() const noexcept { return std::min(steps_ * global_, size_); }
  // Batches of the whole run.
  std::uint64_t batches() const noexcept { return steps_ * epochs_; }

  // Of a stream that turned out to have so many records.
  void end_at(std::uint64_t records);
  // Of the records that a stream has given: whether all that batch `sequence` may need are there, and one behind
  // it, so that it is not the last.
  bool holds(std::uint64_t records, std::uint64_t sequence) const;
  // The first record that this batch or a later one may need.
  std::uint64_t first_record(std::uint64_t sequence) const { return map_.first_record(sequence * global_); }
  // Batches of a stream of so many records.
  std::uint64_t batches_of(std::uint64_t records) const;

  // `sequence` < batches().
  BatchPosition position(std::uint64_t sequence) const noexcept;
  // Record and pass of the batch's examples from `position.first_row` on, in order.
  void locate(const BatchPosition& position, std::span<std::uint64_t> records, std::span<std::uint64_t> passes);
  // Of one example of the batch, by its number in it.
  Located locate(const BatchPosition& position, std::int64_t example);
  // Some example of the epoch. May be called by any thread at any time; slow.
  Located draw(std::uint64_t epoch, Philox& random) const;

 private:
  const StreamPlan& plan_;
  std::uint64_t seed_;
  IndexMap map_;
  IndexCursor cursor_;
  std::uint64_t global_;
  std::uint64_t size_, steps_;  // of an epoch
  std::uint64_t epochs_;
  std::uint64_t last_step_;  // of an epoch
};

}  // namespace headrace
