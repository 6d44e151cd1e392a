#include "headrace/tools/measured_run.h"

#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"

namespace headrace::tools {
namespace {

constexpr double kWarmUpSeconds = 10;  // at most

}  // namespace

std::optional<std::int64_t> take_batch(Loader& loader, int replicas, std::chrono::microseconds consumer) {
  std::int64_t examples = 0;
  for (int replica = 0; replica < replicas; ++replica) {
    const std::optional<Batch> batch = loader.next(replica);
    if (!batch) return std::nullopt;
    batch->ready().wait();
    examples += batch->examples();
    if (consumer.count() > 0 && replica == 0) std::this_thread::sleep_for(consumer);
  }
  return examples;
}

void warm_up(Loader& loader, int replicas, const MeasuredRunOptions& options) {
  const Stopwatch watch;
  const std::uint64_t wanted = static_cast<std::uint64_t>(options.warm_passes) * loader.steps_per_epoch();
  const auto cold = [&](std::uint64_t batches) { return !loader.tuned() || batches < wanted; };
  for (std::uint64_t batches = 0; cold(batches) && watch.seconds() < kWarmUpSeconds; ++batches) {
    if (!take_batch(loader, replicas, options.consumer)) return;
  }
}

LoaderStats run_measured(Loader& loader, int replicas, const MeasuredRunOptions& options) {
  if (!take_batch(loader, replicas, options.consumer)) {
    throw ConfigError("the pipeline has no batches", "is the data set empty?");
  }
  warm_up(loader, replicas, options);
  const LoaderStats before = loader.stats();
  const Stopwatch clock;
  while (clock.seconds() < options.seconds && take_batch(loader, replicas, options.consumer)) {
  }
  const LoaderStats interval = loader.stats().since(before);
  interval.require_good();
  if (interval.examples == 0) {
    throw ConfigError("the stream ended before it was measured", "give more --epochs or a smaller --global-batch");
  }
  return interval;
}

}  // namespace headrace::tools
