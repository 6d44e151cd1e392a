#include "headrace/devices/cuda/math/pooling.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/global_average_work.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

cudaError_t max_pool_forward(const TensorView& x, const TensorView& y, const TensorView& argmax,
                             const PoolOptions& options, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_max_pool_forward(launch, x, y, argmax, options);
  return launch.status();
}

cudaError_t max_pool_backward(const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                              const PoolOptions& options, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_max_pool_backward(launch, dy, argmax, dx, options);
  return launch.status();
}

cudaError_t global_average_forward(const TensorView& x, const TensorView& y, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_global_average_forward(launch, x, y);
  return launch.status();
}

cudaError_t global_average_backward(const TensorView& dy, const TensorView& dx, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_global_average_backward(launch, dy, dx);
  return launch.status();
}

}  // namespace headrace::cuda
