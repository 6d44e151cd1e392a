// Adam and SGD, as Kernels has them, on the current device. Each returns the status of its launch. Private to the
// CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

cudaError_t adam(const Parameters& parameters, const TensorView& gradients, const TensorView& first_moment,
                 const TensorView& second_moment, std::span<const UpdateRange<AdamOptions>> ranges,
                 const StepScalars* scalars, cudaStream_t stream);
cudaError_t sgd(const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
                std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars, cudaStream_t stream);

}  // namespace headrace::cuda
