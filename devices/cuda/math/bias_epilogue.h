// A bias that no library kernel has added. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// Computes y += bias. y is f32 or bf16 of shape (..., C), the bias f32 (C). Returns the status of the launch.
cudaError_t add_bias(const TensorView& y, const TensorView& bias, cudaStream_t stream);

}  // namespace headrace::cuda
