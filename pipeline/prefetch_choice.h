// Predicts a loader's prefetch depth without creating one.
#pragma once

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/loader.h"

namespace HEADRACE_API headrace {

// Returns the prefetch depth that a loader with these options would choose. Allocates no batches and reads no
// records, except for a filter's pass. Throws like Loader's constructor.
Choice choose_prefetch(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options);

}  // namespace headrace
