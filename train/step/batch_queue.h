// Keeps a few global batches in flight: copies each shard of a batch to its device, launches its work, copies the
// totals back, and checks them when the batch is done.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/step/batch_feed.h"
#include "headrace/train/step/mirrored_program.h"
#include "headrace/train/step/step_clock.h"
#include "headrace/train/step/step_slot.h"

namespace headrace {

// Use from one thread. After an error nothing more can be submitted.
class BatchQueue {
 public:
  // Throws ConfigError if the data's fields do not fit the net, the loss or the metrics, or if averaged weights
  // are requested but not kept.
  BatchQueue(ModelState& model, const Fields& fields, const BatchQueueOptions& options);
  ~BatchQueue();  // waits for what was submitted
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  const MirroredProgram& program() const noexcept { return program_; }
  const Shards& shards() const noexcept { return program_.shards(); }
  // Counts the batches known to be done.
  const RunningTotals& totals() const noexcept { return totals_; }
  RunningTotals& totals() noexcept { return totals_; }

  // Submits a batch's computation once the batch is in place.
  struct Work {
    std::function<void(int shard)> compute;                // in each shard's stream
    std::function<void(int replica)> finish = [](int) {};  // in each replica's, after all of its shards
  };
  // Waits for the next global batch and returns all of its shards; std::nullopt at the end of the data.
  std::optional<GlobalBatch> take(Loader& loader);
  // Submits the batch that was taken last. Waits while `in_flight` batches are unfinished.
  void submit(GlobalBatch batches, const StepScalars& common, const Work& work);

  // Runs once everything that submit() and the work do, with no examples and at rate 0, so that devices load what
  // they need at first use. Waits. The caller restores what the work changes.
  void warm_up(const Work& work);

  // Called for each batch, in order, when it is done on all replicas.
  std::function<void(const StepSlot&)> on_done;

  // Returns the batch that was submitted last. Throws ConfigError if there was none.
  const StepSlot& last_batch() const;
  // Counts what was submitted to the replica's stream since the last batch as that batch's work.
  void record_done(int replica);

  // Counts the waits for these sums, instead of those within collectives, if they are apart. REQUIRES: the reducer
  // lives as long as batches are submitted.
  void time_sums(const Reducer& reducer) noexcept { clock_.time_sums(reducer); }

  // Waits for all batches.
  void drain();
  // Waits for all batches and reads all totals, see RunningTotals::finish().
  void finish();
  // Waits for all batches, then resets totals and times.
  void reset();

  // Since the last reset.
  const StepTimes& times() const noexcept { return clock_.times; }
  const std::vector<StepTimes>& replica_times() const noexcept { return clock_.replica_times; }
  // Returns whether submit() waits for a batch's host functions before it submits the end of the step: those of a
  // loss may throw, and a GPU would update the weights all the same.
  bool waits_for_host_functions() const;
  // Returns how long the calling thread has waited here, for input or for devices.
  std::uint64_t waited_ns() const noexcept { return waited_ns_; }

 private:
  StepSlot make_slot() const;
  std::size_t result_bytes() const;
  void describe(const Batch& batch, const StepScalars& common, ShardSlot& slot);
  float group_scale(const Batch& batch, const StepScalars& common) const;
  void copy_in(int shard, const Batch& batch, ShardSlot& slot);
  void copy_out(int shard, const ShardSlot& slot);
  void wait_for_host_functions(const StepSlot& step);
  // Throws a DeviceError that names replica and step unless the batch's work is valid.
  void require_success(const StepSlot& slot);
  void make_room(std::size_t oldest);
  void wait_until_done(const StepSlot& step);
  // Waits for a batch, counts it and checks its numbers.
  void collect(std::size_t index);
  // Calls function(shard) for the replica's shards.
  template <typename Function>
  void for_shards_of(int replica, const Function& function) const {
    for (int shard = shards().first_of(replica); shard < shards().first_of(replica + 1); ++shard) function(shard);
  }
  // Returns the index of the slot `steps` places after `index` in the ring.
  std::size_t after(std::size_t index, std::size_t steps) const noexcept {
    return (index + steps) % slots_.size();
  }
  const StepSlot& previous() const noexcept { return slots_[after(next_, slots_.size() - 1)]; }
  Stream& stream(int shard) const { return shards().stream(shard); }

  ModelState& model_;
  NanPolicy nan_;
  MirroredProgram program_;
  RunningTotals totals_;
  BatchFeed feed_;
  StepClock clock_;
  std::vector<MemoryCopy> copies_;  // about to be submitted
  std::vector<StepSlot> slots_;     // a ring, one more than are in flight: times need the one before the oldest
  bool in_bursts_;
  std::size_t next_ = 0;
  bool submitted_ = false;  // any batch so far
  bool restarted_ = true;   // since the last batch was submitted
  bool failed_ = false;
  std::uint64_t asked_ns_ = 0, taken_ns_ = 0;  // the last take(), on the host
  std::uint64_t waited_ns_ = 0;
};

}  // namespace headrace
