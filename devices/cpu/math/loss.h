// Softmax and its cross-entropies, row by row. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

struct LossShape {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};

// dlogits may be null. Losses are added in f64 in row order.
void softmax_cross_entropy(const LossShape& shape, const float* logits, const std::int64_t* labels,
                           float label_smoothing, const StepScalars& scalars, float* dlogits, MetricSums& sums);
// Against targets for every class.
void soft_cross_entropy(const LossShape& shape, const float* logits, const float* targets, float label_smoothing,
                        const StepScalars& scalars, float* dlogits, MetricSums& sums);
void softmax(const LossShape& shape, const float* logits, float* probabilities);
// dx may be dy.
void softmax_backward(const LossShape& shape, const float* p, const float* dy, float* dx);

}  // namespace headrace::cpu
