#include "headrace/devices/cuda/math/pooled_norm.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/pooled_norm_work.h"

namespace headrace::cuda {

cudaError_t max_pool_batch_norm_train(const TensorView& x, const Kernels::MaxPool& pool, const TensorView& pooled,
                                      const Kernels::BatchNorm& norm, const StepScalars* scalars,
                                      const TensorView& y, void* scratch, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_max_pool_batch_norm_train(launch, x, pool, pooled, norm, scalars, y, scratch);
  return launch.status();
}

cudaError_t max_pool_batch_norm_backward(const TensorView& pooled, const TensorView& dy,
                                         const Kernels::BatchNorm& norm, const StepScalars* scalars,
                                         const TensorView& dgamma, const TensorView& dbeta,
                                         const Kernels::MaxPool& pool, const TensorView& dx, void* scratch,
                                         cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_max_pool_batch_norm_backward(launch, pooled, dy, norm, scalars, dgamma, dbeta, pool, dx, scratch);
  return launch.status();
}

}  // namespace headrace::cuda
