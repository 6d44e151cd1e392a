// Adam and SGD, as Kernels has them, on the current device. Each returns the status of its launch. Private to the
// CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

cudaError_t adam(const TensorView& parameters, const TensorView& gradients, const TensorView& first_moment,
                 const TensorView& second_moment, const AdamOptions& options, const StepScalars* scalars,
                 cudaStream_t stream);
cudaError_t sgd(const TensorView& parameters, const TensorView& gradients, const TensorView& velocity,
                const SgdOptions& options, const StepScalars* scalars, cudaStream_t stream);

}  // namespace headrace::cuda
