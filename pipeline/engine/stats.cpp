#include "headrace/pipeline/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

double per_second(std::uint64_t amount, std::uint64_t elapsed_ns) {
  return elapsed_ns > 0 ? static_cast<double>(amount) * 1e9 / static_cast<double>(elapsed_ns) : 0;
}

// Returns the mean over the interval between two measurements, from their means and counts.
double mean_since(double now, std::uint64_t count, double earlier, std::uint64_t earlier_count) {
  if (count <= earlier_count) return 0;
  const double sum = now * static_cast<double>(count) - earlier * static_cast<double>(earlier_count);
  return std::max(0.0, sum / static_cast<double>(count - earlier_count));
}

double mean_of_both(double a, std::uint64_t count_a, double b, std::uint64_t count_b) {
  const std::uint64_t count = count_a + count_b;
  if (count == 0) return 0;
  return (a * static_cast<double>(count_a) + b * static_cast<double>(count_b)) / static_cast<double>(count);
}

// Calls apply(mine, other's) for every counter.
template <typename Apply>
void for_each_count(LoaderStats& mine, const LoaderStats& other, Apply apply) {
  apply(mine.elapsed_ns, other.elapsed_ns);
  apply(mine.asked, other.asked);
  apply(mine.batches, other.batches);
  apply(mine.examples, other.examples);
  apply(mine.bytes, other.bytes);
  apply(mine.consumer_wait_ns, other.consumer_wait_ns);
  apply(mine.read_ns, other.read_ns);
  apply(mine.decode_ns, other.decode_ns);
  apply(mine.operate_ns, other.operate_ns);
  apply(mine.bad_records, other.bad_records);
  apply(mine.warned_records, other.warned_records);
  apply(mine.oriented_images, other.oriented_images);
  apply(mine.read_retries, other.read_retries);
  apply(mine.cache.hits, other.cache.hits);
  apply(mine.cache.misses, other.cache.misses);
  for (std::size_t i = 0; i < mine.stages.size() && i < other.stages.size(); ++i) {
    apply(mine.stages[i].items, other.stages[i].items);
    apply(mine.stages[i].busy_ns, other.stages[i].busy_ns);
    apply(mine.stages[i].wait_ns, other.stages[i].wait_ns);
    apply(mine.stages[i].waits, other.stages[i].waits);
    apply(mine.stages[i].decoded_bytes, other.stages[i].decoded_bytes);
  }
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double LoaderStats::examples_per_second() const noexcept { return per_second(examples, elapsed_ns); }

LoaderStats LoaderStats::since(const LoaderStats& earlier) const {
  LoaderStats interval = *this;
  interval.ready_batches = mean_since(ready_batches, asked, earlier.ready_batches, earlier.asked);
  interval.ready_share = mean_since(ready_share, asked, earlier.ready_share, earlier.asked);
  for_each_count(interval, earlier, [](auto& count, const auto& before) { count -= before; });
  return interval;
}

LoaderStats LoaderStats::after(const LoaderStats& earlier) const {
  LoaderStats both = *this;
  both.ready_batches = mean_of_both(ready_batches, asked, earlier.ready_batches, earlier.asked);
  both.ready_share = mean_of_both(ready_share, asked, earlier.ready_share, earlier.asked);
  for_each_count(both, earlier, [](auto& count, const auto& before) { count += before; });
  return both;
}

void LoaderStats::require_good() const {
  if (examples > 0 || bad_records == 0) return;
  throw Error(
      ErrorCode::kDataCorrupt, "not one of " + count_of(bad_records, "example") + " could be used: all are bad",
      joined({advice("list them with {}", named("ErrorPolicy::quarantine")), "mend them or leave them out"},
             "; "));
}

std::string LoaderStats::summary() const {
  const double waited =
      elapsed_ns > 0 ? static_cast<double>(consumer_wait_ns) / static_cast<double>(elapsed_ns) : 0;
  std::string text = fmt::format(
      "{:.0f} images/s, {:.1f} MB/s; consumer wait {:.1f} %; {:.0f} % of batches were ready, {:.1f} of {} on "
      "average",
      examples_per_second(), per_second(bytes, elapsed_ns) * 1e-6, 100 * waited, 100 * ready_share, ready_batches,
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

const char* to_string(StageKind kind) noexcept {
  switch (kind) {
    case StageKind::kRead: return "read";
    case StageKind::kDecode: return "decode";
    case StageKind::kOperate: return "operate";
    case StageKind::kAssemble: return "assemble";
    case StageKind::kCopy: return "copy";
    case StageKind::kConsume: return "consume";
  }
  return "unknown";
}

double StageStats::ns_per_item() const noexcept {
  return ratio(static_cast<double>(busy_ns), static_cast<double>(items));
}

double StageStats::occupancy(std::uint64_t elapsed_ns) const noexcept {
  return ratio(static_cast<double>(busy_ns), static_cast<double>(elapsed_ns) * threads);
}

double WaitHistogram::value_of(std::size_t bucket) noexcept {
  if (bucket < 4) return static_cast<double>(bucket);
  const std::size_t octave = bucket / 4 - 1;
  const auto width = static_cast<double>(std::uint64_t{1} << octave);
  return (static_cast<double>(4 + bucket % 4) + 0.5) * width;
}

std::uint64_t WaitHistogram::count() const noexcept {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double WaitHistogram::quantile_ns(double share) const noexcept {
  const std::uint64_t all = count();
  if (all == 0) return 0;
  const double wanted = share * static_cast<double>(all);
  std::uint64_t seen = 0;
  std::size_t last = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (counts_[bucket] == 0) continue;
    last = bucket;
    seen += counts_[bucket];
    if (static_cast<double>(seen) >= wanted) break;
  }
  return value_of(last);
}

WaitHistogram& WaitHistogram::operator+=(const WaitHistogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  return *this;
}

WaitHistogram& WaitHistogram::operator-=(const WaitHistogram& earlier) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] -= earlier.counts_[i];
  return *this;
}

}  // namespace headrace
