// Measures a loader with a consumer that only takes batches.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "headrace/pipeline/loader.h"
#include "headrace/tools/output/progress_line.h"

namespace headrace::tools {

constexpr double kMinSeconds = 0.01, kMaxSeconds = 86400;         // of --seconds
constexpr std::uint64_t kEndlessEpochs = std::uint64_t{1} << 30;  // for a run that the clock ends

struct MeasuredRunOptions {
  double seconds = 1;
  std::chrono::microseconds consumer{0};  // sleep per global batch, in place of a training step
  int warm_passes = 0;  // passes over the data before the clock starts, which fill caches and index JPEGs
  double max_warm_up_seconds = 10;
};

struct WarmUp {
  bool finished = false;     // the engine has tuned itself and the passes are over
  double batch_seconds = 0;  // mean time between batches; 0: none was taken
};

// Takes and returns every replica's share of the next global batch; returns their examples, std::nullopt at the
// end.
std::optional<std::int64_t> take_batch(Loader& loader, std::chrono::microseconds consumer = {});

// Returns the first batch's examples. Throws Error(kNotFound) if there is none.
std::int64_t take_first_batch(Loader& loader, std::chrono::microseconds consumer = {});

// Takes batches until the engine has tuned itself and the warm-up passes are over, or the time is up.
WarmUp warm_up(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line);

// Returns the loader's statistics over that time. Throws ConfigError if the data end earlier.
LoaderStats run_measured(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line);

// Waits until the engine has made all batches that fit and is idle.
void wait_until_idle(const Loader& loader);

// The share of a command's --seconds for its warm-up; --warm-up, if given, comes before --seconds.
struct TimePlan {
  double seconds = 0;  // --seconds
  double warm_up = 0;  // --warm-up; 0: not given

  double whole_seconds() const { return seconds + warm_up; }
  // Returns the limit for a warm-up that begins `elapsed` seconds after the start.
  double max_warm_up_seconds(double elapsed) const {
    return warm_up > 0 ? warm_up : std::max(0.0, kWarmUpShare * seconds - elapsed);
  }

  static constexpr double kWarmUpShare = 0.4;
};

}  // namespace headrace::tools
