// Losses, row by row. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// The rows of a call that are real, the factor of their gradients, and their weights.
struct RealRows {
  std::int64_t count = 0;
  float factor = 0;
  const float* weights = nullptr;  // null: 1

  float weight(std::int64_t row) const noexcept { return weights == nullptr ? 1.0F : weights[row]; }
};

struct LossShape {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};

// dlogits may be null. Losses are added in f64 in row order.
void softmax_cross_entropy(const LossShape& shape, const float* logits, const std::int64_t* labels,
                           float label_smoothing, const RealRows& real, float* dlogits, MetricSums& sums);
// Takes a target for every class.
void soft_cross_entropy(const LossShape& shape, const float* logits, const float* targets, float label_smoothing,
                        const RealRows& real, float* dlogits, MetricSums& sums);
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
void element_loss(ElementLoss loss, const ElementRows<Target>& of, const RealRows& real, float* dx,
                  MetricSums& sums);

// `vectors` of `width` numbers for each of `rows` examples.
struct CosineRows {
  std::int64_t rows = 0, vectors = 0, width = 0;
  const float* x = nullptr;
  const float* targets = nullptr;
};

// Implements Kernels::cosine_loss(); dx may be null.
void cosine_loss(const CosineRows& of, const RealRows& real, float* dx, MetricSums& sums);

// Adds losses that were computed elsewhere.
void add_losses(const float* losses, const RealRows& real, MetricSums& sums);

}  // namespace headrace::cpu
