// Measures the gain of a cache of decoded samples by trying one: the counters of a run without a cache do not show
// how long reading decoded samples takes.
#pragma once

#include <optional>
#include <string>

#include "headrace/pipeline/stats.h"
#include "headrace/tools/measure/measured_run.h"
#include "headrace/tools/options/pipeline_options.h"

namespace headrace::tools {

// The running pipeline without a cache, and its statistics so far.
struct UncachedRun {
  Loader& loader;
  const LoaderStats& stats;
};

// Returns whether the loader has decoded something so far that no cache keeps.
bool can_try_cache(const PipelineCommandOptions& options, const LoaderStats& so_far);

// Fills the cache `where`, "memory" or a folder, with as many records as can be decoded in a fifth of
// `run.seconds`, a `share` of --seconds, with a maximum of about a GiB and a minimum of two batches; then runs the
// same pipeline on them, in turn with the one without a cache. All of it takes about `run.seconds`; if batches
// take too long for that, a line on standard error gives the --seconds that would suffice, and nothing is tried.
std::optional<WhatIf> try_cache(PipelineCommandOptions options, const std::string& where, DeviceGroup& devices,
                                const LoaderOptions& loader, const UncachedRun& without,
                                const MeasuredRunOptions& run, double share, ProgressLine& line);

}  // namespace headrace::tools
