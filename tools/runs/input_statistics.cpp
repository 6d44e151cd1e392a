#include "headrace/tools/runs/input_statistics.h"

#include <algorithm>

#include "headrace/tools/output/json_lines.h"

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

}  // namespace headrace::tools
