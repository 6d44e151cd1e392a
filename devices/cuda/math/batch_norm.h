// Batch normalisation, as Kernels has it, on the current device. x, y, dy and dx of a call are all f32 or all
// bf16, everything else f32; `scratch` is of batch_norm_scratch_bytes(x). Each returns the status of its launches.
// Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

cudaError_t batch_norm_train(const TensorView& x, const Kernels::BatchNorm& norm, const StepScalars* scalars,
                             const TensorView& y, void* scratch, cudaStream_t stream);
cudaError_t batch_norm_infer(const TensorView& x, const Kernels::BatchNorm& norm, const TensorView& y,
                             cudaStream_t stream);
cudaError_t batch_norm_backward(const TensorView& x, const TensorView& dy, const Kernels::BatchNorm& norm,
                                const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                                const TensorView& dx, void* scratch, cudaStream_t stream);

}  // namespace headrace::cuda
