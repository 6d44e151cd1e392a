#include "headrace/pipeline/stats.h"

#include "headrace/devices/base/counted.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/counted.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

double per_second(std::uint64_t amount, std::uint64_t elapsed_ns) {
  return elapsed_ns > 0 ? static_cast<double>(amount) * 1e9 / static_cast<double>(elapsed_ns) : 0;
}

// Of what happened in between, from two means and what they are over.
double mean_since(double now, std::uint64_t count, double earlier, std::uint64_t earlier_count) {
  if (count <= earlier_count) return 0;
  const double sum = now * static_cast<double>(count) - earlier * static_cast<double>(earlier_count);
  return std::max(0.0, sum / static_cast<double>(count - earlier_count));
}

void subtract(StageStats& now, const StageStats& earlier) {
  now.items -= earlier.items;
  now.busy_ns -= earlier.busy_ns;
  now.wait_ns -= earlier.wait_ns;
  now.waits -= earlier.waits;
}

}  // namespace

double LoaderStats::examples_per_second() const noexcept { return per_second(examples, elapsed_ns); }

LoaderStats LoaderStats::since(const LoaderStats& earlier) const {
  LoaderStats interval = *this;
  interval.elapsed_ns -= earlier.elapsed_ns;
  interval.ready_batches = mean_since(ready_batches, asked, earlier.ready_batches, earlier.asked);
  interval.ready_share = mean_since(ready_share, asked, earlier.ready_share, earlier.asked);
  interval.asked -= earlier.asked;
  interval.batches -= earlier.batches;
  interval.examples -= earlier.examples;
  interval.bytes -= earlier.bytes;
  interval.stall_ns -= earlier.stall_ns;
  interval.read_ns -= earlier.read_ns;
  interval.decode_ns -= earlier.decode_ns;
  interval.operate_ns -= earlier.operate_ns;
  interval.bad_records -= earlier.bad_records;
  interval.warned_records -= earlier.warned_records;
  interval.oriented_images -= earlier.oriented_images;
  interval.read_retries -= earlier.read_retries;
  interval.cache.hits -= earlier.cache.hits;
  interval.cache.misses -= earlier.cache.misses;
  for (std::size_t i = 0; i < interval.stages.size() && i < earlier.stages.size(); ++i) {
    subtract(interval.stages[i], earlier.stages[i]);
  }
  return interval;
}

void LoaderStats::require_good() const {
  if (examples > 0 || bad_records == 0) return;
  throw Error(ErrorCode::kDataCorrupt,
              "not one of " + count_of(bad_records, "example") + " could be used: all are bad",
              "list them with --quarantine FILE (ErrorPolicy::quarantine); mend them or leave them out");
}

std::string LoaderStats::summary() const {
  const double stalled = elapsed_ns > 0 ? static_cast<double>(stall_ns) / static_cast<double>(elapsed_ns) : 0;
  std::string text = fmt::format(
      "{:.0f} images/s, {:.1f} MB/s; input stall {:.1f} %; {:.0f} % of batches were ready, {:.1f} of {} on "
      "average",
      examples_per_second(), per_second(bytes, elapsed_ns) * 1e-6, 100 * stalled, 100 * ready_share, ready_batches,
      slots);
  if (const std::uint64_t looked = cache.hits + cache.misses; looked > 0) {
    text += fmt::format("; cache hits {:.1f} %, {:.1f} MB",
                        100 * static_cast<double>(cache.hits) / static_cast<double>(looked),
                        static_cast<double>(cache.bytes) * 1e-6);
  }
  if (bad_records > 0) text += "; " + count_of(bad_records, "bad record");
  if (warned_records > 0) text += "; " + count_of(warned_records, "record") + " used with a warning";
  if (oriented_images > 0)
    text += fmt::format("; {} with an EXIF orientation", count_of(oriented_images, "image"));
  if (read_retries > 0) text += fmt::format("; {} reads tried again", read_retries);
  return text;
}

}  // namespace headrace
