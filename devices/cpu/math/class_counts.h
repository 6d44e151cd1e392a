// Counts of right and wrong predictions, row by row. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

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
