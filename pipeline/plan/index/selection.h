// What a filter keeps: found by one parallel scan over the source, the first time somebody asks.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/plan/scan/filter_scan.h"

namespace headrace {

// Shared by all plans that grew from one filter(). Thread-safe.
class Selection {
 public:
  // `before` is the plan that the filter was put behind.
  Selection(PlanPtr before, RecordFilter filter) : before_(std::move(before)), filter_(std::move(filter)) {}

  const RecordFilter& filter() const noexcept { return filter_; }
  // "filter(name, version 1)", and of a filter of processed fields what they are processed by.
  std::string describe() const;
  // The positions, among those of the index stages that stay before the filter, whose record is kept; what could
  // not be read or judged is. The first call, of this or of filter_failures(), reads every record of them. It
  // throws the ConfigError of the function, what no record is to blame for, as running out of memory, and
  // Error(kTimeout) and what a ScanPoll throws as RecordScan does; a later call then tries again.
  const BitSelect& kept() const { return result().kept; }
  // The records that could not be read or judged, by their number in the source of `before`. They are never tried
  // again.
  const FilterFailures& filter_failures() const { return result().filter_failures; }

 private:
  class Turn;

  const FilterScan& result() const;
  FilterScan scan() const;

  PlanPtr before_;
  RecordFilter filter_;
  mutable std::mutex mutex_;
  mutable std::condition_variable turn_ended_;
  mutable bool taken_ = false;                // by mutex_: a thread is reading the records
  mutable std::optional<FilterScan> result_;  // set by the thread whose turn it is
};

// How many of the index stages stay before a filter that is put behind them: a trailing run of shuffles and
// repeats commutes with it and comes after it. ConfigError where the rest picks other records every epoch.
std::size_t stages_before_filter(const std::vector<Stage>& index_stages);

}  // namespace headrace
