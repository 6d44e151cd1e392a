// The length of a vector. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// The order of its sums depends on `count` alone: the same bits with any number of threads.
double sum_of_squares(const float* x, std::int64_t count);

// As Kernels::clip_factor().
void clip_factor(float max_norm, GradientNorm& norm);

}  // namespace headrace::cpu
