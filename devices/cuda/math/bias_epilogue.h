// Bias and activation if no library kernel has fused them. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// Computes y = relu(y + bias) in place, as far as `epilogue` demands. y is f32 or bf16 of shape (..., C), the bias
// f32 (C). Launches nothing without a bias and an activation. Returns the status of the launch.
cudaError_t apply_epilogue(const TensorView& y, const TensorView& bias, Epilogue epilogue, cudaStream_t stream);

}  // namespace headrace::cuda
