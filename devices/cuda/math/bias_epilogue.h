// Bias and activation where no library kernel has them fused. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// In place: y = relu(y + bias), each as far as `epilogue` says. y is f32 or bf16 of shape (..., C), the bias f32
// (C); with neither a bias nor an activation nothing is launched. Returns the status of the launch.
cudaError_t apply_epilogue(const TensorView& y, const TensorView& bias, Epilogue epilogue, cudaStream_t stream);

}  // namespace headrace::cuda
