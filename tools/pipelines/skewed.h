// A load for benchmarks: some samples take far longer than the rest.
#pragma once

#include "headrace/pipeline/operations.h"

namespace headrace::tools {

// Keeps its thread busy for one u8 image of shape (224, 224, 3) in twenty, for 19 times jpeg-train's time for a
// sample; leaves the pixels unchanged.
Operations skew();

}  // namespace headrace::tools
