// The longest record's lengths, found by one pass over all of them.
#pragma once

#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/combined/padded_field.h"

namespace headrace {

// `paddings` with their lengths: where one is 0 it becomes the longest record's, and at least 1. That reads every
// record, as RecordScan does, and throws what it does. One that cannot be read, or whose bytes are no whole
// entries, is passed over here: it is a bad record where it stands in the stream.
std::vector<PaddedField> with_lengths(const SourcePtr& source, std::vector<PaddedField> paddings);

}  // namespace headrace
