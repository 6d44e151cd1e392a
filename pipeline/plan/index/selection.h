// The records that a filter keeps, found at the first request by one parallel scan over the source.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/plan/scan/filter_scan.h"
#include "headrace/pipeline/plan/scan/scan_once.h"

namespace headrace {

// Shared by all plans derived from one filter(). Thread-safe.
class Selection {
 public:
  // `before` is the plan to which the filter was appended.
  Selection(PlanPtr before, RecordFilter filter) : before_(std::move(before)), filter_(std::move(filter)) {}

  const RecordFilter& filter() const noexcept { return filter_; }
  // Returns "filter(name, version 1)" and, for a filter of processed fields, their processing.
  std::string describe() const;
  // Returns the positions, among those of the index stages before the filter, whose record is kept, including
  // records that could not be read or judged. The first call to this or filter_failures() reads all their records.
  // Throws the function's ConfigError, errors for which no record is at fault, such as running out of memory, and,
  // as RecordScan does, Error(kTimeout) and a ScanPoll's exceptions; a later call then retries.
  const BitSelect& kept() const { return result().kept; }
  // Returns the records that could not be read or judged, by their number in the source of `before`. They are
  // never retried.
  const FilterFailures& filter_failures() const { return result().filter_failures; }

 private:
  const FilterScan& result() const;
  FilterScan scan() const;

  PlanPtr before_;
  RecordFilter filter_;
  ScanOnce<FilterScan> result_;
};

// Returns how many of the index stages remain before a filter appended to them: a trailing run of shuffles and
// repeats commutes with it and moves after it. Throws ConfigError if the rest picks other records every epoch.
std::size_t stages_before_filter(const std::vector<Stage>& index_stages);
// Returns it for the stage that finds the buckets of records, which leaves their positions alone and so commutes
// with enumerate(), too.
std::size_t stages_before_buckets(const std::vector<Stage>& index_stages);

}  // namespace headrace
