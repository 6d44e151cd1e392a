// The range recorded by a profiler that waits for a signal: ncu --profile-from-start off, nsys
// --capture-range=cudaProfilerApi.
#pragma once

#include "headrace/train/callbacks.h"

namespace headrace::tools {

// Returns a callback that records only epoch `epoch` (from 1) of a fit: submitted work of adjacent epochs has
// ended by then. Throws ConfigError if there is no NVIDIA driver; if the driver refuses, prints a warning on
// standard error.
Callback profiled_epoch(int epoch);

}  // namespace headrace::tools
