// Losses that are means over the elements of an example. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// Elements of `rows` examples, each against its target.
template <typename Target>
struct ElementRows {
  std::int64_t rows = 0;
  std::int64_t elements = 0;  // of an example
  const float* x = nullptr;
  const Target* targets = nullptr;
  float label_smoothing = 0;  // target = (1 - label_smoothing) t + label_smoothing / 2
};

// dx may be null. Of float and std::int64_t targets. An example's elements are added in f64 in their order, and so
// are the examples.
template <typename Target>
void element_loss(ElementLoss loss, const ElementRows<Target>& of, const StepScalars& scalars, float* dx,
                  MetricSums& sums);

// Adds what was computed elsewhere.
void add_losses(const float* losses, const StepScalars& scalars, MetricSums& sums);

}  // namespace headrace::cpu
