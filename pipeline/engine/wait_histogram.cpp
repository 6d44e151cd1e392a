#include "headrace/pipeline/stats.h"

#include <numeric>

namespace headrace {

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
