// Batch normalisation of a matrix (rows, channels). Private to the CPU backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// The first `real` of `rows` rows count; the others are normalised with the same statistics.
struct NormRows {
  std::int64_t real = 0;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
};

// T is float or BFloat16.
template <typename T>
void batch_norm_train(const NormRows& rows, const T* x, const kernel::BatchNorm& norm, T* y);
template <typename T>
void batch_norm_infer(const NormRows& rows, const T* x, const kernel::BatchNorm& norm, T* y);
// dgamma and dbeta may be null. dx may be dy; its rows after the real ones become 0.
template <typename T>
void batch_norm_backward(const NormRows& rows, const T* x, const T* dy, const kernel::BatchNorm& norm,
                         float* dgamma, float* dbeta, T* dx);

// Implement the functions of Kernels of these names.
void pack_statistics(const NormRows& rows, const kernel::BatchNorm& norm, float* row);
void join_statistics(const float* statistics, std::int64_t world_replicas, std::int64_t replica,
                     const kernel::BatchNorm& norm, float* variance, float* inverse_counts);
template <typename T>
void join_input_gradient(const NormRows& rows, const T* x, const kernel::BatchNorm& norm, const float* own,
                         const float* joint, const float* inverse_counts, T* dx);

// The number of channels processed together: one block of their rows stays in the first-level cache.
inline constexpr std::int64_t kNormStrip = 64;

// The normalised value is (x - mean) * scale + beta, one coefficient per channel.
struct NormAffine {
  const float* mean;
  const float* scale;
  const float* beta;
};

inline float* workspace_floats(std::int64_t count) {
  return reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(count) * sizeof(float)));
}

inline float gamma_of(const kernel::BatchNorm& norm, std::int64_t channel) {
  return norm.gamma.defined() ? norm.gamma.as<float>()[channel] : 1.0F;
}

}  // namespace headrace::cpu
