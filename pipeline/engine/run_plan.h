// A plan prepared to run: everything that is fixed before the first batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/engine/batch_set.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/operations/machinery/mixer.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/index/batch_schedule.h"
#include "headrace/pipeline/plan/placement.h"
#include "headrace/pipeline/plan/sample_program.h"

namespace headrace {

// The memory budgets of the run, charged at each allocation.
struct Budgets {
  explicit Budgets(const LoaderOptions& options)
      : memory("LoaderOptions::memory_budget_bytes", options.memory_budget_bytes),
        pinned("LoaderOptions::pinned_budget_bytes", options.pinned_budget_bytes) {}

  MemoryBudget memory, pinned;
};

// The most batches that a batch is overtaken by: as many as can be prefetched.
constexpr std::uint64_t kMaxAhead = 1024;

// Throws ConfigError unless the batches ahead of the state ascend, beyond it and within kMaxAhead of it.
void check_ahead(const LoaderState& state);

// Immutable once constructed, except for the schedule's cursor, which belongs to the assembler.
struct RunPlan {
  // Throws ConfigError if plan and options do not fit each other or the devices. REQUIRES: `budgets` outlives
  // this.
  RunPlan(const Dataset& dataset, const DeviceGroup& devices, const LoaderOptions& options, Budgets& budgets);
  RunPlan(const RunPlan&) = delete;
  RunPlan& operator=(const RunPlan&) = delete;

  const Source& source() const noexcept { return *plan.source; }
  // Returns whether examples with bad records are removed from the stream.
  bool skips() const noexcept { return options.errors.on_error == OnError::kSkip; }

  // Returns whether some batch may have no example, and is then not handed out.
  bool may_leave_out_batches() const noexcept {
    return !options.empty_batches && (skips() || schedule.may_drop_batches());
  }

  // Returns the zero-based number of the interval that the batch is in. The limit of bad records applies to each
  // interval: an epoch or, of a stream, some batches.
  std::uint64_t whole_of(const BatchPosition& position) const noexcept {
    if (!source().info().streamed) return position.epoch;
    return position.sequence * static_cast<std::uint64_t>(plan.batch->global_batch) / bad_records_of;
  }

  // Returns the first batch of the whole after that of `sequence`.
  std::uint64_t whole_end(std::uint64_t sequence) const noexcept;
  // Returns the first batch of the next epoch; of a stream whose first epoch has not ended, the largest number.
  std::uint64_t epoch_end(std::uint64_t sequence) const noexcept;

  // Returns whether records come from a network rather than a disk.
  bool reads_network() const noexcept {
    return (readers > 0 || source().sharded() != nullptr) && is_url(source().info().name);
  }

  // Returns the fields of varying length; null, except after ragged_batch().
  const RaggedRows* ragged_rows() const noexcept { return ragged ? &*ragged : nullptr; }

  // Returns whether other loaders serve some of the replicas.
  bool is_part() const noexcept { return layout.local_replicas < layout.world_replicas; }

  // Returns whether batches are so cheap to make that handing out the work would cost more.
  bool suits_bursts(const DeviceGroup& devices) const;

  StreamPlan plan;
  LoaderOptions options;
  int lanes;    // maximum of compute lanes
  int readers;  // maximum
  DeviceSplit split;
  ResidentChoice residency;
  DecodeChoice decoding;
  StreamPlan host;  // `plan` without the devices' operations
  BatchSchedule schedule;
  std::uint64_t bad_records_of;  // the examples of which bad records are a share
  BadRecordLimit bad_limit;
  FilterFailures filter_failures;
  std::uint64_t fingerprint;
  std::vector<StageIdentity> stages;  // what the fingerprint covers
  std::vector<BatchShape> shapes;     // of each bucket's batches, or one of ragged ones; empty: all are alike
  BatchLayout layout;                 // of the rows written by the host; of buckets, of their largest batches
  SampleProgram program;
  std::optional<RaggedRows> ragged;
  bool copies_rows = false;  // whether all rows are copied from the source's columns
  bool in_bursts = false;    // batches are made as LoaderOptions::in_bursts says
  std::vector<Mixer> mixers;
  std::uint64_t first = 0;  // sequence of the first batch
  BatchSet earlier;         // what the earlier part of the run handed out: all below `first`, and perhaps more
};

}  // namespace headrace
