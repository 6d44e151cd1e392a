#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/elementwise_calls.h"
#include "headrace/devices/cuda/math/own_kernels.h"

namespace headrace::cuda {

// The members whose bodies are included above.
template class GpuKernels<CudaLaunches>;

cudaError_t add_bias(const TensorView& y, const TensorView& bias, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_bias_activation(launch, y, bias, Activation::kNone);
  return launch.status();
}

cudaError_t convert(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_convert(launch, from, to);
  return launch.status();
}

}  // namespace headrace::cuda
