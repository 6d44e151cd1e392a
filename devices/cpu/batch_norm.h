// Batch normalisation of a matrix (rows, channels). Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// The first `real` of `rows` rows count; the others are normalised with the same figures.
struct NormRows {
  std::int64_t real = 0;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
};

void batch_norm_train(const NormRows& rows, const float* x, const Kernels::BatchNorm& norm, float* y);
void batch_norm_infer(const NormRows& rows, const float* x, const Kernels::BatchNorm& norm, float* y);
// dgamma and dbeta may be null. dx may be dy; its rows beyond the real ones become 0.
void batch_norm_backward(const NormRows& rows, const float* x, const float* dy, const Kernels::BatchNorm& norm,
                         float* dgamma, float* dbeta, float* dx);

}  // namespace headrace::cpu
