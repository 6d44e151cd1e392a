#include "headrace/devices/cuda/math/dropout.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/dropout_work.h"

namespace headrace::cuda {

cudaError_t dropout(const TensorView& x, float rate, std::uint64_t seed, int layer, const StepScalars* scalars,
                    const TensorView& y, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_dropout(launch, x, rate, seed, layer, scalars, y);
  return launch.status();
}

}  // namespace headrace::cuda
