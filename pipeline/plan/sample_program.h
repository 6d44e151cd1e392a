// All a plan does to one record, compiled: from the source's bytes or the cache's to the rows of a batch.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/operations/machinery/sample_chains.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// A field of a record as its first step sees it.
FieldView view_of(const Field& field, std::span<const std::byte> bytes) noexcept;

// Const but for the cache, which is thread-safe; shared by all threads.
class SampleProgram {
 public:
  // Where each field of a sample goes in its batch.
  using Rows = SampleRows;

  // Binds the plan's cache, if it has one.
  explicit SampleProgram(const StreamPlan& plan);

  // Keeps indexes of JPEGs of which windows are decoded, for records that come again and again. They are charged
  // to the budget, which must outlive this. Before the first record.
  void keep_jpeg_indexes(MemoryBudget& budget);

  // Keeps the steps' names in the trace. Before the first record, where one is traced.
  void name_spans(Trace& trace);

  // Whether a sample deserves a task of its own, as things are: what is in a warm cache is decoded no more.
  bool is_slow() const noexcept { return slow_after_cache_ || (slow_before_cache_ && !is_warm()); }
  // True when nothing is done to a record but copying its fields to their rows, which may be done without this.
  bool only_copies() const noexcept;
  // What a compute thread's time is divided into, in the order a record meets them: steps one by one, and last
  // everything else. StepContext::samples has one for each.
  const std::vector<StageName>& stages() const noexcept { return stages_; }
  // True when every record is in the cache: the source need not be read.
  bool is_warm() const noexcept;

  // True when finding a cached sample may wait for a file.
  bool cache_may_wait() const noexcept { return cache_ != nullptr && !cache_->resident(); }

  // The cached sample of a record, perhaps in `scratch`; empty where there is none. Counts a hit or a miss.
  std::span<const std::byte> find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const noexcept;
  void run_cached(std::span<const std::byte> sample, const StepContext& context, const Rows& rows) const;
  // Also puts the sample into the cache.
  void run_record(const RecordView& record, const StepContext& context, const Rows& rows) const;

 private:
  SampleView view(const RecordView& record) const noexcept;

  Fields fields_;  // of a record
  std::shared_ptr<SampleCache> cache_;
  std::optional<SampleChains> before_;  // the cache; none where there is no cache
  SampleChains after_;
  std::uint64_t records_ = 0;
  LabelCheck labels_;
  std::vector<StageName> stages_;
  bool slow_before_cache_ = false, slow_after_cache_ = false;
};

}  // namespace headrace
