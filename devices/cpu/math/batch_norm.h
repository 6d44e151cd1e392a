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

// Returns the batch as a matrix of channels; its first `examples` examples are real.
inline NormRows norm_rows(const TensorView& x, std::int64_t examples) {
  const std::int64_t channels = x.shape.back();
  const std::int64_t rows = x.elements() / channels;
  return {.real = examples * (rows / x.shape[0]), .rows = rows, .channels = channels};
}

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
