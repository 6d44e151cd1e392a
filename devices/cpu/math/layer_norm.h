// Layer normalisation of rows. Private to the CPU backend.
#pragma once

#include <cstdint>

namespace headrace::cpu {

struct LayerNormRows {
  std::int64_t rows = 0, columns = 0;
  const float* x = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // null: 1 and 0
  float *mean = nullptr, *inv_std = nullptr;      // by row, from forward to backward
};

void layer_norm_forward(const LayerNormRows& of, float epsilon, float* y);
// Sums over rows in f64, in their order; each result may be null.
void layer_norm_sums(const LayerNormRows& of, const float* dy, float* dgamma, float* dbeta);
// dx may be dy.
void layer_norm_input_gradient(const LayerNormRows& of, const float* dy, float* dx);

}  // namespace headrace::cpu
