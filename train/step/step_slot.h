// The host's side of a batch in flight, and the counts of loss and metrics that it brings back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/devices/event.h"
#include "headrace/devices/kernels.h"
#include "headrace/pipeline/batch.h"
#include "headrace/train/metrics.h"
#include "headrace/train/step/mirrored_program.h"

namespace headrace {

// The host's side of a batch in flight: what it sends to the devices and gets back.

// One shard of the batch. Pointers point into `pinned`. Written by the host before the batch is submitted, then by
// the stream until `done`.
struct ShardSlot {
  static constexpr std::int64_t kNotRun = -1;  // in the first of the totals' examples: the stream skipped the work

  // Returns whether totals and results are valid. REQUIRES: `done` is complete.
  bool succeeded() const noexcept { return first_sums().examples != kNotRun && !scalars->failed(); }

  MetricSums& first_sums() const noexcept { return *reinterpret_cast<MetricSums*>(totals); }

  int replica = 0;
  Buffer pinned = {};
  float* group_scale = nullptr;
  StepScalars* scalars = nullptr;  // those of failures come back
  // An objective's totals of all batches since the last reset, this one included, and class numbers; null when
  // predicting.
  std::byte* totals = nullptr;
  std::byte* labels = nullptr;
  float* result = nullptr;  // null unless predicting
  // Timed: the shard's stream begins this batch, the batch has arrived, the replica's stream has done all of it.
  std::unique_ptr<Event> begin = nullptr, arrived = nullptr, done = nullptr;
  bool idle = true;     // perhaps, before it: `begin` was recorded; else it begins where the last one ends
  bool waited = false;  // for the batch to arrive: `arrived` was recorded
  std::uint64_t submitted_ns = 0;  // host time of `begin`'s submission

  std::int64_t examples = 0;
  std::vector<std::uint64_t> records = {};
};

struct StepSlot {
  std::vector<ShardSlot> shards;
  bool pending = false;
  std::uint64_t step = 0;  // the model's
  BatchPosition position;
  // Host times between which next() waited for it.
  std::uint64_t asked_ns = 0, taken_ns = 0;
  bool restarted = false;  // the first since times were reset
};

// Counts of loss and metrics since the last reset, over all shards.

// The devices count; this class holds what the host has read: of this process's batches until finish(), then of
// the world's. One thread.
class RunningTotals {
 public:
  // REQUIRES: `program` outlives it.
  RunningTotals(Strategy& strategy, const MirroredProgram& program) : strategy_(strategy), program_(program) {}

  MetricSums sums() const { return objective() ? objective()->sums(seen_) : MetricSums{}; }
  // Returns the metrics' values; those of tables only after finish(), until the next batch is read.
  std::vector<MetricValue> metrics() const;

  // Reads the totals that came back with a batch. REQUIRES: the batch is done, and an objective.
  void read(const StepSlot& slot);
  // Returns the first loss that counted other examples than those of the batches read; null if none did.
  const LossFunction* miscounted() const { return objective()->miscounted(seen_, examples_); }
  // Reads the tables and waits for them; of several workers, reads all totals of the world's shards, so that the
  // sums have the bits of one process. REQUIRES: all batches are done; all workers make the call.
  void finish();
  // Submits zeros to the devices' totals and forgets what was read. REQUIRES: all batches are done.
  void reset();

  // For checkpoints, between two batches. A replica saves one set per shard, of saved_set_bytes() each.
  int saved_sets() const noexcept { return program_.shards().per_replica(); }
  std::size_t saved_set_bytes() const noexcept {
    return program_.layout().totals_bytes + program_.layout().tables_bytes;
  }
  // Writes the replica's sets to `into` in the order of the replica's stream.
  void save(int replica, std::byte* into) const;
  // Returns the sets of the world's shards. REQUIRES: as finish().
  std::vector<std::vector<std::byte>> gather() const;
  // Continues from the saved sets of the world's shards; if their number differs, the first shard gets their sum.
  // Throws ConfigError for totals of another loss or other metrics. REQUIRES: reset() was called before.
  void restore(const std::vector<std::vector<std::byte>>& saved);

 private:
  const Objective* objective() const noexcept { return program_.objective(); }
  void read_tables();
  void add(const std::vector<std::byte>& set, ObjectiveTotals& into) const;
  // Copies one set to a shard's totals and tables, in the order of its stream.
  void write(int shard, const std::byte* from) const;

  Strategy& strategy_;
  const MirroredProgram& program_;
  ObjectiveTotals seen_;
  std::int64_t examples_ = 0;  // of the batches in seen_
};

}  // namespace headrace
