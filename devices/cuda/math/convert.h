// Conversion between f32 and bf16. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// Copies `from` to `to`, rounding to the nearest if `to` is narrower. Both f32 or bf16, of one shape, on the
// current device. Returns the status of the launch.
cudaError_t convert(const TensorView& from, const TensorView& to, cudaStream_t stream);

}  // namespace headrace::cuda
