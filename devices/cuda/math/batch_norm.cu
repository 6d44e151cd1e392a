#include "headrace/devices/cuda/math/batch_norm.h"

#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/cuda_launcher.cuh"

namespace headrace::cuda {

cudaError_t batch_norm_train(const TensorView& x, const Kernels::BatchNorm& norm, const StepScalars* scalars,
                             const TensorView& y, void* scratch, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_batch_norm_train(launch, x, norm, scalars, y, scratch);
  return launch.status();
}

cudaError_t batch_norm_infer(const TensorView& x, const Kernels::BatchNorm& norm, const TensorView& y,
                             cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_batch_norm_infer(launch, x, norm, y);
  return launch.status();
}

cudaError_t batch_norm_backward(const TensorView& x, const TensorView& dy, const Kernels::BatchNorm& norm,
                                const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                                const TensorView& dx, void* scratch, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_batch_norm_backward(launch, x, dy, norm, scalars, dgamma, dbeta, dx, scratch);
  return launch.status();
}

}  // namespace headrace::cuda
