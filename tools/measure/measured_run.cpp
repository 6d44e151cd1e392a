#include "headrace/tools/measure/measured_run.h"

#include <fmt/format.h>

#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"

namespace headrace::tools {
std::optional<std::int64_t> take_batch(Loader& loader, std::chrono::microseconds consumer) {
  std::int64_t examples = 0;
  for (int replica = 0; replica < loader.devices().size(); ++replica) {
    const std::optional<Batch> batch = loader.next(replica);
    if (!batch) return std::nullopt;
    batch->ready().wait();
    examples += batch->examples();
    if (consumer.count() > 0 && replica == 0) std::this_thread::sleep_for(consumer);
  }
  return examples;
}

std::int64_t take_first_batch(Loader& loader, std::chrono::microseconds consumer) {
  const std::optional<std::int64_t> examples = take_batch(loader, consumer);
  if (!examples) throw Error(ErrorCode::kNotFound, "the pipeline has no batches", "is the data set empty?");
  return *examples;
}

WarmUp warm_up(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line) {
  const Stopwatch watch;
  const std::uint64_t wanted = static_cast<std::uint64_t>(options.warm_passes) * loader.steps_per_epoch();
  std::uint64_t batches = 0;
  const auto cold = [&] { return !loader.tuned() || batches < wanted; };
  while (cold() && watch.seconds() < options.max_warm_up_seconds) {
    line.show(fmt::format("warming up: {:.1f} s, the maximum is {:.1f} s", watch.seconds(),
                          options.max_warm_up_seconds));
    if (!take_batch(loader, options.consumer)) break;
    ++batches;
  }
  return {.finished = !cold(), .batch_seconds = batches > 0 ? watch.seconds() / static_cast<double>(batches) : 0};
}

LoaderStats run_measured(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line) {
  const LoaderStats before = loader.stats();
  const Stopwatch clock;
  while (clock.seconds() < options.seconds && take_batch(loader, options.consumer)) {
    line.show(fmt::format("measuring: {:.1f} s of {:.1f} s", clock.seconds(), options.seconds));
  }
  const LoaderStats interval = loader.stats().since(before);
  interval.require_good();
  if (interval.examples == 0) {
    throw ConfigError("the stream ended before it was measured", "give more --epochs or a smaller --global-batch");
  }
  return interval;
}

void wait_until_idle(const Loader& loader) {
  static constexpr std::chrono::milliseconds kQuiet{25};  // longer than a thread works on one record
  const auto work_done = [&loader] {
    std::uint64_t items = 0;
    for (const StageStats& stage : loader.stats().stages) items += stage.items;
    return items;
  };
  for (std::uint64_t before = work_done();;) {
    std::this_thread::sleep_for(kQuiet);
    const std::uint64_t now = work_done();
    if (now == before) return;
    before = now;
  }
}

}  // namespace headrace::tools
