// Maps a batch of the stream to its examples.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/plan/index/batch_rows.h"
#include "headrace/pipeline/plan/index/bucket_batches.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// The replicas that share a batch, and whether evenly.
struct Sharing {
  EvenShares even = EvenShares::kOff;
  std::int64_t replicas = 1;
};

// Used by one thread at a time; any thread may call functions about the whole run. A stream counts as having
// kUnknownRecords records until end_at() is called; every epoch has as many as the first.
class BatchSchedule {
 public:
  // Throws ConfigError if the batches could not be numbered. REQUIRES: `plan` outlives this.
  BatchSchedule(const StreamPlan& plan, std::uint64_t seed, std::uint64_t epochs, const Sharing& sharing);
  BatchSchedule(const BatchSchedule&) = delete;
  BatchSchedule& operator=(const BatchSchedule&) = delete;

  std::uint64_t steps_per_epoch() const noexcept { return steps_.load(std::memory_order_relaxed); }
  // Returns whether that is certain: false for a stream before end_at().
  bool is_known() const noexcept { return known_.load(std::memory_order_acquire); }
  // Returns the examples of the largest batch, repeats included: at most those of an epoch, and 1 if it has none.
  std::int64_t largest_batch() const noexcept {
    return with_repeats(static_cast<std::int64_t>(std::max<std::uint64_t>(rows_.largest(), 1)));
  }
  // Returns the examples of the bucket's largest batch; 0 if it has none. REQUIRES: the plan has buckets.
  std::int64_t largest_batch(std::size_t bucket) const noexcept { return with_repeats(buckets_->largest(bucket)); }
  // Returns whether EvenShares::kDrop may leave nothing of some batch.
  bool may_drop_batches() const noexcept {
    if (sharing_.even != EvenShares::kDrop) return false;
    if (buckets_ || !plain_ || plan_.source->info().streamed) return true;
    const std::uint64_t rest = size_ % global_, replicas = static_cast<std::uint64_t>(sharing_.replicas);
    return rest > 0 && rest < replicas;
  }
  // Returns the examples of an epoch, as if all batches chosen after batch() were full.
  std::uint64_t examples_per_epoch() const noexcept {
    return plain_ ? std::min(steps_per_epoch() * global_, size_) : steps_per_epoch() * global_;
  }
  // Returns the number of batches of the whole run; of a stream whose first epoch has not ended, the most that
  // there can be.
  std::uint64_t batches() const noexcept;

  // Sets the records of each epoch of a stream, once their number is known; kUnknownRecords: there are more than
  // an epoch takes.
  void end_at(std::uint64_t records);
  // Returns the epoch of a batch.
  std::uint64_t epoch_of(std::uint64_t sequence) const noexcept { return sequence / steps_per_epoch(); }
  // Returns whether the `records` that a stream has delivered of an epoch include all that its batch `sequence`
  // may need, and one after it, so that it is not the last.
  bool holds(std::uint64_t records, std::uint64_t sequence) const;
  // Returns the last record that this batch or an earlier one of its epoch may need.
  std::uint64_t last_record(std::uint64_t sequence) const {
    const std::uint64_t after = (batches_.last_record(sequence % steps_per_epoch()) + 1) * global_;
    return map_.last_record(std::min(after, size_) - 1);
  }
  // Returns the first record that this batch or a later one of its epoch may need.
  std::uint64_t first_record(std::uint64_t sequence) const {
    return map_.first_record(batches_.first_record(sequence % steps_per_epoch()) * global_);
  }

  // REQUIRES: `sequence` < batches(), and no other thread calls locate().
  BatchPosition position(std::uint64_t sequence) const;
  // Writes record and pass of the batch's examples from `position.first_row` on, in order, and to `numbers` those
  // of each one's enumerate() stages; `numbers` is empty if nobody needs them.
  void locate(const BatchPosition& position, std::span<std::uint64_t> records, std::span<std::uint64_t> passes,
              std::span<std::uint64_t> numbers);
  // Returns record and pass of one example of the batch, by its zero-based index, and writes its numbers.
  Located locate(const BatchPosition& position, std::int64_t example, std::span<std::uint64_t> numbers);
  // Returns a random example of the epoch, and writes its numbers: one of a batch of the same bucket. May be
  // called by any thread at any time; slow.
  Located draw(const BatchPosition& like, Philox& random, std::span<std::uint64_t> numbers) const;

 private:
  // Returns the batch, in the order of batch(), that stands at this step, and its pass.
  Located batch_at(std::uint64_t epoch, std::uint64_t step) const {
    return plain_ ? Located{.record = step, .pass = epoch} : batch_cursor_.locate(epoch, step);
  }
  // Returns the batches of a pass. REQUIRES: the plan has buckets. Thread-safe.
  std::shared_ptr<const BucketedPass> arranged(std::uint64_t pass) const;
  Located draw_place(const BatchPosition& like, Philox& random) const;
  std::int64_t with_repeats(std::int64_t examples) const noexcept {
    const std::int64_t over = sharing_.even == EvenShares::kRepeat ? examples % sharing_.replicas : 0;
    return over == 0 ? examples : examples + sharing_.replicas - over;
  }
  // Returns the place within its batch of an example, which may be a repeat.
  static std::uint64_t place_of(std::uint64_t example, const BatchPosition& position) noexcept {
    const auto once = static_cast<std::uint64_t>(position.global_examples - position.repeats);
    return example < once ? example : example % once;
  }

  struct Arranged {
    std::uint64_t pass = 0;
    std::shared_ptr<const BucketedPass> batches;
  };

  const StreamPlan& plan_;
  std::uint64_t seed_;
  bool plain_;  // whether no stage orders the batches, and none are combined
  IndexMap map_;
  IndexCursor cursor_;
  BatchRows rows_;    // of batches without buckets
  IndexMap batches_;  // of the stages after batch()
  IndexCursor batch_cursor_;
  std::uint64_t global_;
  std::uint64_t size_;                // of an epoch
  std::atomic<std::uint64_t> steps_;  // of an epoch, at least 1
  std::atomic<bool> known_;
  std::uint64_t epochs_;
  Sharing sharing_;
  std::uint64_t last_step_;               // of an epoch
  std::optional<BucketBatches> buckets_;  // std::nullopt: all batches but the last are alike
  std::size_t kept_passes_ = 2;           // an epoch and the next
  mutable std::mutex mutex_;
  mutable std::vector<Arranged> arranged_;  // the latest passes; by mutex_
};

}  // namespace headrace
