// What a cache of decoded samples would bring, tried where it cannot be computed: the counters of a run without
// one do not say what reading decoded samples takes.
#pragma once

#include <optional>
#include <string>

#include "headrace/pipeline/verdict.h"
#include "headrace/tools/measured_run.h"
#include "headrace/tools/pipeline_options.h"

namespace headrace::tools {

// The pipeline without a cache, at work, and what it did so far.
struct UncachedRun {
  Loader& loader;
  const LoaderStats& stats;
};

// Runs the same pipeline on as many of its records as are decoded in about a second and fill about a GiB at most,
// once they are all in the cache `where`: "memory" or a folder; then in turn with the one without, each for
// `run.seconds` in all. None where nothing is decoded or the pipeline has a cache already.
std::optional<WhatIf> try_cache(PipelineCommandOptions options, const std::string& where, DeviceGroup& devices,
                                const LoaderOptions& loader, const UncachedRun& without,
                                const MeasuredRunOptions& run);

}  // namespace headrace::tools
