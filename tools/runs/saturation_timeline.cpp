#include "headrace/tools/runs/saturation_timeline.h"

#include <algorithm>
#include <cstdio>

#include "headrace/devices/base/error.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

bool same_threads(const LoaderStats& a, const LoaderStats& b) {
  return std::ranges::equal(a.stages, b.stages, {}, &StageStats::threads, &StageStats::threads);
}

// `later` with what was counted before added to it.
LoaderStats both(const LoaderStats& earlier, const LoaderStats& later) {
  if (later.examples == 0) return earlier;
  if (earlier.examples == 0 || !same_threads(earlier, later)) return later;
  return later.after(earlier);
}

}  // namespace

void InputStatistics::end_epoch(const LoaderStats& epoch) {
  done_ = both(done_, epoch);
  present_ = {};
}

nlohmann::ordered_json InputStatistics::to_json() const {
  const LoaderStats stats = both(done_, present_);
  if (stats.examples == 0 || stats.stages.empty()) return nullptr;
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const StageStats& stage : stats.stages) stages.push_back(stage_line(stage, stats.elapsed_ns));
  const double elapsed = static_cast<double>(stats.elapsed_ns);
  return {{"seconds", elapsed * 1e-9},
          {"batches", stats.batches},
          {"examples", stats.examples},
          {"examples_per_second", stats.examples_per_second()},
          {"bytes", stats.bytes},
          {"consumer_wait_fraction", elapsed > 0 ? static_cast<double>(stats.consumer_wait_ns) / elapsed : 0},
          {"first_batch_ms", static_cast<double>(stats.first_batch_ns) * 1e-6},
          {"ready_share", stats.ready_share},
          {"ready_batches", stats.ready_batches},
          {"slots", stats.slots},
          {"memory_bytes", stats.memory_bytes},
          {"pinned_bytes", stats.pinned_bytes},
          {"kept_records", stats.kept_records},
          {"device_decoded", stats.device_decoded},
          {"cache_hits", stats.cache.hits},
          {"cache_misses", stats.cache.misses},
          {"cache_bytes", stats.cache.bytes},
          {"bad_records", stats.bad_records},
          {"warned_records", stats.warned_records},
          {"oriented_images", stats.oriented_images},
          {"read_retries", stats.read_retries},
          {"summary", stats.summary()},
          {"stages", stages},
          {"verdict", verdict_line(judge(stats), stats)}};
}

namespace {

constexpr double kMinSampleSeconds = 1, kSampleShare = 1.0 / 500;

}  // namespace

double sample_seconds(double elapsed) { return std::max(kMinSampleSeconds, kSampleShare * elapsed); }

void SaturationTimeline::Work::add(const Work& now, const Work& before) {
  examples += std::max(0.0, now.examples - before.examples);
  seconds += std::max(0.0, now.seconds - before.seconds);
  times.elapsed_ns += now.times.elapsed_ns - before.times.elapsed_ns;
  times.input_stall_ns += now.times.input_stall_ns - before.times.input_stall_ns;
  times.exposed_copy_ns += now.times.exposed_copy_ns - before.times.exposed_copy_ns;
  times.idle_ns += now.times.idle_ns - before.times.idle_ns;
  times.sync_wait_ns += now.times.sync_wait_ns - before.times.sync_wait_ns;
}

SaturationTimeline::Work SaturationTimeline::work_of(double rate, double seconds,
                                                     const std::vector<StepTimes>& local_replicas) {
  Work work{.examples = rate * seconds, .seconds = seconds};
  for (const StepTimes& one : local_replicas) {
    work.times.elapsed_ns += one.elapsed_ns;
    work.times.input_stall_ns += one.input_stall_ns;
    work.times.exposed_copy_ns += one.exposed_copy_ns;
    work.times.idle_ns += one.idle_ns;
    work.times.sync_wait_ns += one.sync_wait_ns;
  }
  return work;
}

void SaturationTimeline::begin_training(int number) {
  if (pending_.seconds > 0) write(clock_.seconds());
  training_ = number;
  clock_.restart();
  begin_ = 0;
  seen_ = pending_ = {};
}

void SaturationTimeline::step(const StepReport& report) {
  const Work epoch = work_of(report.examples_per_second, report.seconds, report.local_replicas);
  take(epoch, clock_.seconds(), report.epoch + 1, report.global_step);
}

void SaturationTimeline::end_epoch(const EpochReport& report) {
  std::int64_t trained_ns = 0;
  for (const StepTimes& one : report.local_replicas) trained_ns = std::max(trained_ns, one.elapsed_ns);
  const double trained = static_cast<double>(trained_ns) * 1e-9, now = clock_.seconds();
  const double validated = std::max(0.0, report.seconds - trained);
  take(work_of(report.examples_per_second, trained, report.local_replicas), std::max(begin_, now - validated),
       report.epoch + 1, report.global_step);
  if (validated >= sample_seconds(now) && pending_.seconds > 0) write(now - validated);
  if (pending_.seconds == 0) begin_ = now;
  seen_ = {};
}

void SaturationTimeline::finish() {
  if (pending_.seconds > 0) write(clock_.seconds());
  if (lines_) lines_->finish();
}

void SaturationTimeline::take(const Work& epoch, double until, int number, std::uint64_t step) {
  pending_.add(epoch, seen_);
  seen_ = epoch;
  epoch_ = number;
  step_ = step;
  if (until - begin_ >= sample_seconds(until)) write(until);
}

void SaturationTimeline::write(double until) {
  if (!lines_ || pending_.times.elapsed_ns <= 0) return;
  const StepTimes& times = pending_.times;
  try {
    lines_->write({{"training", training_},
                   {"begin_seconds", begin_},
                   {"end_seconds", std::max(begin_, until)},
                   {"epoch", epoch_},
                   {"step", step_},
                   {"examples_per_second", pending_.seconds > 0 ? pending_.examples / pending_.seconds : 0},
                   {"input_stall_fraction", times.input_stall_fraction()},
                   {"exposed_copy_fraction", times.exposed_copy_fraction()},
                   {"device_idle_fraction", times.device_idle_fraction()},
                   {"sync_wait_fraction", times.sync_wait_fraction()}});
  } catch (const Error& error) {
    print(stderr, "headrace: warning: the timeline of the run ends here: {}\n", error.message());
    lines_.reset();
  }
  begin_ = std::max(begin_, until);
  pending_ = {};
}

}  // namespace headrace::tools
