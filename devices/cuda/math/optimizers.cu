#include "headrace/devices/cuda/math/optimizers.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/optimizer_work.h"

namespace headrace::cuda {

cudaError_t adam(const Parameters& parameters, const TensorView& gradients, const TensorView& first_moment,
                 const TensorView& second_moment, std::span<const UpdateRange<AdamOptions>> ranges,
                 const StepScalars* scalars, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_adam(launch, parameters, gradients, first_moment, second_moment, ranges, scalars);
  return launch.status();
}

cudaError_t sgd(const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
                std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_sgd(launch, parameters, gradients, velocity, ranges, scalars);
  return launch.status();
}

}  // namespace headrace::cuda
