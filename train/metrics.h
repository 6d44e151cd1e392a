// What is counted beside the loss: exact sums over examples and replicas, never a mean of means.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/devices/kernels.h"

namespace headrace {

enum class Metric { kAccuracy };

// The share of examples whose largest logit is their label's.
constexpr Metric accuracy() { return Metric::kAccuracy; }

inline MetricSums& operator+=(MetricSums& sums, const MetricSums& more) {
  sums.loss += more.loss;
  sums.correct += more.correct;
  sums.examples += more.examples;
  return sums;
}

// Per example; 0 where there were none.
inline double mean_loss(const MetricSums& sums) {
  return sums.examples > 0 ? sums.loss / static_cast<double>(sums.examples) : 0.0;
}
inline double mean_accuracy(const MetricSums& sums) {
  return sums.examples > 0 ? static_cast<double>(sums.correct) / static_cast<double>(sums.examples) : 0.0;
}

}  // namespace headrace
