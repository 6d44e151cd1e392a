// A loader in front of a consumer that only takes: what the commands measure.
#pragma once

#include <chrono>

#include "headrace/pipeline/loader.h"

namespace headrace::tools {

struct MeasuredRunOptions {
  double seconds = 1;
  std::chrono::microseconds consumer{0};  // slept a global batch, in place of a training step
  std::uint64_t warm_up = 0;              // examples taken before the clock starts, beside the tuning
};

// What the loader did in that time, without its start and its tuning. ConfigError where the data end before.
LoaderStats run_measured(Loader& loader, int replicas, const MeasuredRunOptions& options);

}  // namespace headrace::tools
