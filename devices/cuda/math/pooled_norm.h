// Max pooling and the batch normalisation of its result, as Kernels has them, on the current device. Activations
// of a call are all f32 or all bf16; `scratch` is of batch_norm_scratch_bytes(pooled). Each returns the status of
// its launches. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

cudaError_t max_pool_batch_norm_train(const TensorView& x, const Kernels::MaxPool& pool, const TensorView& pooled,
                                      const Kernels::BatchNorm& norm, const StepScalars* scalars,
                                      const TensorView& y, void* scratch, cudaStream_t stream);
cudaError_t max_pool_batch_norm_backward(const TensorView& pooled, const TensorView& dy,
                                         const Kernels::BatchNorm& norm, const StepScalars* scalars,
                                         const TensorView& dgamma, const TensorView& dbeta,
                                         const Kernels::MaxPool& pool, const TensorView& dx, void* scratch,
                                         cudaStream_t stream);

}  // namespace headrace::cuda
