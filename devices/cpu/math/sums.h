// Sums over rows, vectors and parts, each in one fixed order. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// Rows of one block are added in f32, blocks in f64, in one fixed order: the same bits with any number of
// threads, and an error that does not grow with the number of rows.
inline constexpr std::int64_t kSumBlock = 64;

// sums[c] = sum over rows of x[row * columns + c], times `factor`. In and Out are float or BFloat16; Out is float
// if In is.
template <typename In, typename Out>
void column_sums(const In* x, Out* sums, std::int64_t rows, std::int64_t columns, float factor = 1.0F);

// Adds in an order that depends only on `count`: the same bits with any number of threads.
double sum_of_squares(const float* x, std::int64_t count);

// Implements Kernels::clip_factor().
void clip_factor(float max_norm, GradientNorm& norm);

// sum = the parts, at most kMaxSummed vectors of `count` elements, added as one pairwise tree ((0+1)+(2+3))+...,
// an odd one out moving up; sum may be parts[0].
void sum_tree(std::span<float* const> parts, float* sum, std::int64_t count);

}  // namespace headrace::cpu
