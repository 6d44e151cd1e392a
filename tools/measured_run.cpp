#include "headrace/tools/measured_run.h"

#include <optional>
#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"

namespace headrace::tools {
namespace {

constexpr double kTuningSeconds = 10;  // at most, before it is measured

// Takes the next global batch as a trainer would and gives it back; false at the end.
bool consume(Loader& loader, int replicas, std::chrono::microseconds busy) {
  for (int replica = 0; replica < replicas; ++replica) {
    const std::optional<Batch> batch = loader.next(replica);
    if (!batch) return false;
    batch->ready().wait();
    if (busy.count() > 0 && replica == 0) std::this_thread::sleep_for(busy);
  }
  return true;
}

}  // namespace

LoaderStats run_measured(Loader& loader, int replicas, const MeasuredRunOptions& options) {
  if (!consume(loader, replicas, options.consumer)) {
    throw ConfigError("the pipeline has no batches", "is the data set empty?");
  }
  for (const Stopwatch tuning; !loader.tuned() && tuning.seconds() < kTuningSeconds;) {
    if (!consume(loader, replicas, options.consumer)) break;
  }
  while (loader.stats().examples < options.warm_up && consume(loader, replicas, options.consumer)) {
  }
  const LoaderStats before = loader.stats();
  const Stopwatch clock;
  while (clock.seconds() < options.seconds && consume(loader, replicas, options.consumer)) {
  }
  const LoaderStats interval = loader.stats().since(before);
  if (interval.examples == 0) {
    throw ConfigError("the stream ended before it was measured", "give more --epochs or a smaller --global-batch");
  }
  return interval;
}

}  // namespace headrace::tools
