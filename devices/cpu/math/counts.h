// Counts of predictions and weights of examples, row by row. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/devices/cpu/math/loss.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// Labels are i64 class numbers, or f32 rows whose first maximum is the class.
struct ClassRows {
  RealRows real;
  std::int64_t classes = 0;
  const float* x = nullptr;
  TensorView labels = {};
};

void count_top(const ClassRows& of, int k, MetricSums& sums);
void count_confusions(const ClassRows& of, std::int64_t* counts);

// Implements Kernels::count_scores().
void count_scores(const ClassRows& of, const ScoreBuckets& buckets, std::int64_t* counts);

// Implements Kernels::example_weights().
void example_weights(const TensorView& labels, std::span<const float> by_class, const float* given,
                     float* weights);

}  // namespace headrace::cpu
