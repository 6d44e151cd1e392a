#include "headrace/train/fit/callbacks/histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace headrace {
namespace {

constexpr int kBuckets = 30;

}  // namespace

events::Histogram histogram_of(std::span<const float> values) {
  std::vector<double> finite;
  for (const float value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  events::Histogram histogram;
  if (finite.empty()) return histogram;
  const auto [min, max] = std::ranges::minmax(finite);
  histogram.set_min(min);
  histogram.set_max(max);
  histogram.set_num(static_cast<double>(finite.size()));
  const int buckets = min < max ? kBuckets : 1;
  std::vector<double> counts(static_cast<std::size_t>(buckets));
  double sum = 0, squares = 0;
  for (const double value : finite) {
    sum += value;
    squares += value * value;
    const double share = min < max ? (value - min) / (max - min) : 0;
    ++counts[static_cast<std::size_t>(std::min(buckets - 1, static_cast<int>(share * buckets)))];
  }
  histogram.set_sum(sum);
  histogram.set_sum_squares(squares);
  for (int i = 0; i < buckets; ++i) {
    histogram.add_bucket_limit(i + 1 == buckets ? max : min + (max - min) * (i + 1) / buckets);
    histogram.add_bucket(counts[static_cast<std::size_t>(i)]);
  }
  return histogram;
}

}  // namespace headrace
