// A plan made ready to run: everything that is fixed before the first batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/operations/machinery/mixer.h"
#include "headrace/pipeline/plan/index/batch_schedule.h"
#include "headrace/pipeline/plan/placement.h"
#include "headrace/pipeline/plan/row_copier.h"
#include "headrace/pipeline/plan/scan/filter_failures.h"

namespace headrace {

// What the run may use, charged as it is allocated.
struct Budgets {
  explicit Budgets(const LoaderOptions& options)
      : memory("LoaderOptions::memory_budget_bytes", options.memory_budget_bytes),
        pinned("LoaderOptions::pinned_budget_bytes", options.pinned_budget_bytes) {}

  MemoryBudget memory, pinned;
};

// Immutable once constructed, but for the schedule's cursor, which is the assembler's.
struct RunPlan {
  // ConfigError where plan and options do not fit each other or the devices. `budgets` must outlive this.
  RunPlan(const Dataset& dataset, const DeviceGroup& devices, const LoaderOptions& options, Budgets& budgets);
  RunPlan(const RunPlan&) = delete;
  RunPlan& operator=(const RunPlan&) = delete;

  const Source& source() const noexcept { return *plan.source; }
  // Whether examples are taken from the stream where their records are bad.
  bool skips() const noexcept { return options.errors.on_error == OnError::kSkip; }

  // Which of the wholes that bad records are a share of a batch is in.
  std::uint64_t whole_of(const BatchPosition& position) const noexcept {
    if (!source().info().streamed) return position.epoch;
    return position.sequence * static_cast<std::uint64_t>(plan.batch->global) / bad_records_of;
  }

  // Whether other loaders serve some of the replicas.
  bool is_part() const noexcept { return layout.local_replicas < layout.world_replicas; }

  StreamPlan plan;
  LoaderOptions options;
  int lanes;    // of compute at most
  int readers;  // at most
  DeviceSplit split;
  ResidentChoice residency;
  StreamPlan host;  // of `plan`, without what the devices do
  BatchSchedule schedule;
  std::uint64_t bad_records_of;  // the examples that bad records are a share of
  BadRecordLimit bad_limit;
  FilterFailures filter_failures;
  std::uint64_t fingerprint;
  BatchLayout layout;  // of the rows that the host writes
  SampleProgram program;
  std::optional<RowCopier> copier;  // where rows are only copied
  std::vector<Mixer> mixers;
  std::uint64_t first = 0;  // sequence of the first batch
};

}  // namespace headrace
