#include "headrace/devices/cuda/math/elementwise.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/elementwise_work.h"

namespace headrace::cuda {

cudaError_t activation_forward(Activation activation, const TensorView& x, const TensorView& y,
                               cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_activation_forward(launch, activation, x, y);
  return launch.status();
}

cudaError_t activation_backward(Activation activation, const TensorView& x, const TensorView& dy,
                                const TensorView& dx, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_activation_backward(launch, activation, x, dy, dx);
  return launch.status();
}

cudaError_t add(const TensorView& a, const TensorView& b, const TensorView& sum, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_add(launch, a, b, sum);
  return launch.status();
}

cudaError_t scale_shift(const TensorView& x, const TensorView& scale, const TensorView& shift, const TensorView& y,
                        cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_scale_shift(launch, x, scale, shift, y);
  return launch.status();
}

}  // namespace headrace::cuda
