// Pooling, as Kernels has it, on the current device. The images of a call are all f32 or all bf16. Each returns
// the status of its launch. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

cudaError_t max_pool_forward(const TensorView& x, const TensorView& y, const TensorView& argmax,
                             const PoolOptions& options, cudaStream_t stream);
cudaError_t max_pool_backward(const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                              const PoolOptions& options, cudaStream_t stream);
cudaError_t global_average_forward(const TensorView& x, const TensorView& y, cudaStream_t stream);
cudaError_t global_average_backward(const TensorView& dy, const TensorView& dx, cudaStream_t stream);

}  // namespace headrace::cuda
