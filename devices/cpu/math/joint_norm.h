// Statistics of batch normalisation over several replicas. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/math/batch_norm.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// As Kernels' functions of these names.
void pack_statistics(const NormRows& rows, const Kernels::BatchNorm& norm, float* row);
void join_statistics(const float* statistics, std::int64_t world_replicas, std::int64_t replica,
                     const Kernels::BatchNorm& norm, float* variance, float* inverse_counts);
template <typename T>
void join_input_gradient(const NormRows& rows, const T* x, const Kernels::BatchNorm& norm, const float* own,
                         const float* joint, const float* inverse_counts, T* dx);

}  // namespace headrace::cpu
