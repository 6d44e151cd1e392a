// A filter's single pass over the records of a plan.
#pragma once

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

struct FilterScan {
  BitSelect kept;  // positions before the filter; includes those of `filter_failures`
  FilterFailures filter_failures;
};

// Reads and judges the record at every position of `index_stages`, as RecordScan does, or the result of
// `sample_stages` if it is not empty; of a combination of processed parts, the combined sample instead of the
// record. Keeps, without judging again, records that filters among the stages could not judge. Throws the error of
// the smallest position: the filter's ConfigError or an error for which no record is at fault, such as running out
// of memory; and as RecordScan::run() does.
FilterScan run_filter(const StreamPlan& plan, const std::vector<StagePtr>& index_stages,
                      const std::vector<SampleStage>& sample_stages, const RecordFilter& filter);

}  // namespace headrace
