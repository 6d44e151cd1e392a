// A loader in front of a consumer that only takes: what the commands measure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "headrace/pipeline/loader.h"

namespace headrace::tools {

struct MeasuredRunOptions {
  double seconds = 1;
  std::chrono::microseconds consumer{0};  // slept a global batch, in place of a training step
  int warm_passes = 0;                    // over the data, before the clock starts: they fill caches, map images
};

// Takes the next global batch from all replicas and gives it back; its examples, nothing at the end.
std::optional<std::int64_t> take_batch(Loader& loader, int replicas, std::chrono::microseconds consumer = {});

// Takes batches until the engine has tuned itself and those passes are over; for ten seconds at most.
void warm_up(Loader& loader, int replicas, const MeasuredRunOptions& options);

// What the loader did in that time, without its start and its warm-up. ConfigError where the data end before.
LoaderStats run_measured(Loader& loader, int replicas, const MeasuredRunOptions& options);

}  // namespace headrace::tools
