// The lengths of the longest record, found by one pass over all records.
#pragma once

#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/combined/padded_field.h"

namespace headrace {

// Returns `paddings` with lengths of 0 replaced by the longest record's, and at least 1. This reads every record
// and throws as RecordScan does. Skips records that cannot be read, or whose bytes are not whole entries: each is
// a bad record at its position in the stream.
std::vector<PaddedField> with_lengths(const SourcePtr& source, std::vector<PaddedField> paddings);

}  // namespace headrace
