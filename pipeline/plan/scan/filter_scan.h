// A filter's one pass over the records of a plan.
#pragma once

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/pipeline/plan/scan/filter_failures.h"

namespace headrace {

struct FilterScan {
  BitSelect kept;  // positions among those before the filter; those of `filter_failures` are
  FilterFailures filter_failures;
};

// Reads and judges every record at a position of `index_stages`, as RecordScan does; where `sample_stages` is not
// empty, what those make of it. What filters among the stages
// could not judge is kept and not judged again. Throws, for the smallest position where one happened, the filter's
// ConfigError and what no record is to blame for, as running out of memory; and what RecordScan::run() does.
FilterScan run_filter(const SourcePtr& source, const std::vector<Stage>& index_stages,
                      const std::vector<SampleStage>& sample_stages, const RecordFilter& filter);

}  // namespace headrace
