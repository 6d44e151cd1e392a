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

// T is float or BFloat16.
template <typename T>
void batch_norm_train(const NormRows& rows, const T* x, const Kernels::BatchNorm& norm, T* y);
template <typename T>
void batch_norm_infer(const NormRows& rows, const T* x, const Kernels::BatchNorm& norm, T* y);
// dgamma and dbeta may be null. dx may be dy; its rows beyond the real ones become 0.
template <typename T>
void batch_norm_backward(const NormRows& rows, const T* x, const T* dy, const Kernels::BatchNorm& norm,
                         float* dgamma, float* dbeta, T* dx);

}  // namespace headrace::cpu
