// Functions of one element, as Kernels has them, on the current device. All views of a call are f32 or all are
// bf16, but for scale_shift. Each returns the status of its launch. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// y may be x.
cudaError_t activation_forward(Activation activation, const TensorView& x, const TensorView& y,
                               cudaStream_t stream);
// dx may be dy.
cudaError_t activation_backward(Activation activation, const TensorView& x, const TensorView& dy,
                                const TensorView& dx, cudaStream_t stream);
// sum may be a or b.
cudaError_t add(const TensorView& a, const TensorView& b, const TensorView& sum, cudaStream_t stream);
// x u8, f32 or bf16; y f32 or bf16.
cudaError_t scale_shift(const TensorView& x, const TensorView& scale, const TensorView& shift, const TensorView& y,
                        cudaStream_t stream);

}  // namespace headrace::cuda
