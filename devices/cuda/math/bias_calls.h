// Biases of GpuKernels: added to a product that no library has fused with them, and their gradients. Private to
// the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/bias_epilogue_work.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::bias_activation(Stream& stream, const char* kernel, const TensorView& y,
                                           const TensorView& bias, Activation activation) {
  launches_.submit(stream, kernel, [=](auto& launch) { submit_bias_activation(launch, y, bias, activation); });
}

template <typename Launches>
void GpuKernels<Launches>::bias_gradient(Stream& stream, const char* kernel, const TensorView& dy,
                                         const TensorView& dbias) {
  if (!dbias.defined()) return;
  launches_.submit(stream, kernel, reduction_scratch_bytes(dy),
                   [=](auto& launch, void* scratch) { submit_column_sums(launch, dy, dbias, scratch); });
}

}  // namespace headrace::cuda
