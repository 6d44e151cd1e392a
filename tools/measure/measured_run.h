// A loader in front of a consumer that only takes: what the commands measure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "headrace/pipeline/loader.h"
#include "headrace/tools/output/progress_line.h"

namespace headrace::tools {

constexpr double kMinSeconds = 0.01, kMaxSeconds = 86400;         // of a --seconds
constexpr std::uint64_t kEndlessEpochs = std::uint64_t{1} << 30;  // for a run that the clock ends

struct MeasuredRunOptions {
  double seconds = 1;
  std::chrono::microseconds consumer{0};  // slept a global batch, in place of a training step
  int warm_passes = 0;  // over the data, before the clock starts: they fill caches and index JPEGs
  double max_warm_up_seconds = 10;
};

struct WarmUp {
  bool finished = false;     // the engine has tuned itself and the passes are over
  double batch_seconds = 0;  // mean time between batches; 0: none was taken
};

// Takes each of the loader's replicas' share of the next global batch and gives it back; their examples, nothing
// at the end.
std::optional<std::int64_t> take_batch(Loader& loader, std::chrono::microseconds consumer = {});

// The first batch's examples. Error(kNotFound) where there is none.
std::int64_t take_first_batch(Loader& loader, std::chrono::microseconds consumer = {});

// Takes batches until the engine has tuned itself and those passes are over, or the time is.
WarmUp warm_up(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line);

// What the loader does in that time. ConfigError where the data end before.
LoaderStats run_measured(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line);

// Waits until the engine has made all the batches that fit and is at rest.
void wait_until_idle(const Loader& loader);

// The share of a command's --seconds that its warm-up may have; where the user gives --warm-up, that much before
// --seconds begin.
struct TimePlan {
  double seconds = 0;  // as --seconds says
  double warm_up = 0;  // as --warm-up says; 0: it was not given

  double whole_seconds() const { return seconds + warm_up; }
  // For a warm-up that begins `elapsed` seconds after the start.
  double max_warm_up_seconds(double elapsed) const {
    return warm_up > 0 ? warm_up : std::max(0.0, kWarmUpShare * seconds - elapsed);
  }

  static constexpr double kWarmUpShare = 0.4;
};

}  // namespace headrace::tools
