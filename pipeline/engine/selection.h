// What a filter keeps: found by one parallel scan over the source, the first time somebody asks.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "headrace/pipeline/engine/bit_select.h"
#include "headrace/pipeline/plan.h"
#include "headrace/pipeline/record_filter.h"

namespace headrace {

// Shared by all plans that grew from one filter(). Thread-safe.
class Selection {
 public:
  // `before` is the plan that the filter was put behind.
  Selection(PlanPtr before, RecordFilter filter) : before_(std::move(before)), filter_(std::move(filter)) {}

  const RecordFilter& filter() const noexcept { return filter_; }
  // The positions, among those of the index stages that stay before the filter, whose record is kept. The first
  // call reads every record of them; it throws the error of the smallest position that cannot be read or judged,
  // and a later call then tries again.
  const BitSelect& kept() const;

 private:
  BitSelect scan() const;

  PlanPtr before_;
  RecordFilter filter_;
  mutable std::mutex mutex_;
  mutable std::optional<BitSelect> kept_;  // by mutex_ until set
};

// How many of the index stages stay before a filter that is put behind them: a trailing run of shuffles and
// repeats commutes with it and comes after it. ConfigError where the rest picks other records every epoch.
std::size_t stages_before_filter(const std::vector<Stage>& index_stages);

}  // namespace headrace
