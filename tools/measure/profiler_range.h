// What a profiler records that waits to be told: ncu --profile-from-start off, nsys
// --capture-range=cudaProfilerApi.
#pragma once

#include "headrace/train/callbacks.h"

namespace headrace::tools {

// Has epoch `epoch` (from 1) of a fit recorded, and nothing else: submitted work of the epochs beside it has ended
// by then. ConfigError where there is no NVIDIA driver; where that refuses there is a warning on standard error.
Callback profiled_epoch(int epoch);

}  // namespace headrace::tools
