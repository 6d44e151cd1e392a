// How many batches a loader would make ahead, without one.
#pragma once

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/loader.h"

namespace HEADRACE_API headrace {

// What a loader with these options would choose for its prefetch depth; allocates no batches and reads no records,
// but for a filter's pass. Throws what the constructor of Loader does.
Choice choose_prefetch(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options);

}  // namespace headrace
