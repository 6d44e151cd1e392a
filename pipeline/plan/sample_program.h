// A plan's work on one record, compiled: from the source's or the cache's bytes to the rows of a batch.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/plan/cached_chains.h"
#include "headrace/pipeline/plan/part_samples.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// Const except for the caches, which are thread-safe; shared by all threads.
class SampleProgram {
 public:
  // The destination of each field of a sample in its batch.
  using Rows = SampleRows;

  // Binds the plan's caches.
  explicit SampleProgram(const StreamPlan& plan);

  // Returns the operations that draw random numbers for each record of a warm cache.
  std::span<const std::uint16_t> random_operations() const noexcept { return random_operations_; }

  // Keeps indexes of JPEGs of which windows are decoded, for repeated records. They are charged to the budget.
  // REQUIRES: called before the first record; `budget` outlives this.
  void keep_jpeg_indexes(MemoryBudget& budget);

  // Keeps the steps' names in the trace. REQUIRES: called before the first traced record.
  void name_spans(Trace& trace);

  // Returns whether a sample currently merits a separate task: samples in a warm cache are not decoded any more.
  bool is_slow() const noexcept;
  // Returns whether a record's fields are only copied to their rows, which does not require this program.
  bool only_copies() const noexcept;
  // Returns the categories of a compute thread's time, in the order in which a record meets them: each step, then
  // everything else. StepContext::samples has one entry for each.
  const std::vector<StageName>& stages() const noexcept { return stages_; }
  // Returns whether every record is in the cache, so that the source need not be read.
  bool is_warm() const noexcept { return chains_.is_warm(); }

  // Returns whether finding a cached sample may wait for a file.
  bool cache_may_wait() const noexcept { return chains_.may_wait(); }

  // Returns the record's sample of the last cache that has it, possibly in `scratch`; empty if none has.
  FoundSample find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const noexcept;
  void run_cached(const FoundSample& found, const StepContext& context, const Rows& rows) const;
  // Also stores the sample in the caches.
  void run_record(const RecordView& record, const StepContext& context, const Rows& rows) const;

 private:
  SampleView view(const RecordView& record) const noexcept;
  // Runs the stages after the last cache into the rows.
  void write(SampleView& sample, const StepContext& context, const Rows& rows) const;

  Fields fields_;                       // of a record
  std::unique_ptr<PartSamples> parts_;  // null: records are as the source holds them
  std::optional<LabelCheck> labels_;    // std::nullopt: the parts check theirs
  CachedChains chains_;
  std::uint64_t records_ = 0;
  std::vector<StageName> stages_;
  std::vector<std::uint16_t> random_operations_;
  bool is_single_ = false;  // whether each field of a record can be run by itself
};

}  // namespace headrace
