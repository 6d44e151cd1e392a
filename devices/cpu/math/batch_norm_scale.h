// What both directions of batch normalisation share. Private to the CPU backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/cpu/math/workspace.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// Channels at a time: one block of rows of them stays in the first-level cache.
inline constexpr std::int64_t kNormStrip = 64;

// What is normalised is (x - mean) * scale + beta, one coefficient a channel.
struct NormAffine {
  const float* mean;
  const float* scale;
  const float* beta;
};

inline float* workspace_floats(std::int64_t count) {
  return reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(count) * sizeof(float)));
}

inline float gamma_of(const Kernels::BatchNorm& norm, std::int64_t channel) {
  return norm.gamma.defined() ? norm.gamma.as<float>()[channel] : 1.0F;
}

}  // namespace headrace::cpu
