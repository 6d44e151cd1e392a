// What a cache of decoded samples would bring, tried where it cannot be computed: the counters of a run without
// one do not say what reading decoded samples takes.
#pragma once

#include <string>

#include "headrace/pipeline/stats.h"
#include "headrace/tools/measured_run.h"
#include "headrace/tools/pipeline_options.h"

namespace headrace::tools {

// The pipeline without a cache, at work, and what it did so far.
struct UncachedRun {
  Loader& loader;
  const LoaderStats& stats;
};

// Whether something is decoded that no cache keeps, by what the loader did so far.
bool can_try_cache(const PipelineCommandOptions& options, const LoaderStats& so_far);

// Runs the same pipeline on as many of its records as are decoded in a fifth of `run.seconds` and fill about a GiB
// at most, but two batches at least, once they are all in the cache `where`: "memory" or a folder; then in turn
// with the one without. All of it takes about `run.seconds`; where batches take too long for that, a line on
// standard error says how long it will be.
WhatIf try_cache(PipelineCommandOptions options, const std::string& where, DeviceGroup& devices,
                 const LoaderOptions& loader, const UncachedRun& without, const MeasuredRunOptions& run,
                 ProgressLine& line);

}  // namespace headrace::tools
