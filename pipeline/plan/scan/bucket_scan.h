// The bucket of every record, by its length, found by one pass over the records.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/stage.h"
#include "headrace/pipeline/sources/combined/padded_field.h"

namespace headrace {

// Reads the record at every position of `index_stages`, as RecordScan does, and judges the length of its field
// `judged`: bucket b has the lengths up to boundaries[b], the last bucket all others. Records that filters among
// the stages could not judge stay theirs. Throws as RecordScan::run() does, and DataError if too many cannot be
// read.
BucketScan run_bucket_scan(const SourcePtr& source, const std::vector<StagePtr>& index_stages,
                           const PaddedField& judged, const std::vector<std::int64_t>& boundaries);

}  // namespace headrace
