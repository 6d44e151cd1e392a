// Dropout, as Kernels has it. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// x and y both f32 or both bf16, on the current device; y may be x. Returns the status of the launch.
cudaError_t dropout(const TensorView& x, float rate, std::uint64_t seed, int layer, const StepScalars* scalars,
                    const TensorView& y, cudaStream_t stream);

}  // namespace headrace::cuda
