// Losses and counts of correct predictions, row by row. Private to the CPU backend.
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
// Takes a target for every class.
void soft_cross_entropy(const LossShape& shape, const float* logits, const float* targets, float label_smoothing,
                        const StepScalars& scalars, float* dlogits, MetricSums& sums);
void softmax(const LossShape& shape, const float* logits, float* probabilities);
// dx may be dy.
void softmax_backward(const LossShape& shape, const float* p, const float* dy, float* dx);

// Elements of `rows` examples, each against its target.
template <typename Target>
struct ElementRows {
  std::int64_t rows = 0;
  std::int64_t elements = 0;  // of an example
  const float* x = nullptr;
  const Target* targets = nullptr;
  float label_smoothing = 0;  // target = (1 - label_smoothing) t + label_smoothing / 2
};

// dx may be null. For float and std::int64_t targets. Adds an example's elements in f64, in order, then the
// examples likewise.
template <typename Target>
void element_loss(ElementLoss loss, const ElementRows<Target>& of, const StepScalars& scalars, float* dx,
                  MetricSums& sums);

// Adds losses that were computed elsewhere.
void add_losses(const float* losses, const StepScalars& scalars, MetricSums& sums);

// Labels are i64 class numbers, or f32 rows whose first maximum is the class.
struct ClassRows {
  std::int64_t rows = 0;  // the real ones
  std::int64_t classes = 0;
  const float* x = nullptr;
  TensorView labels = {};
};

void count_top(const ClassRows& of, int k, MetricSums& sums);
void count_confusions(const ClassRows& of, std::int64_t* counts);

}  // namespace headrace::cpu
