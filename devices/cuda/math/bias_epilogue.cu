#include "headrace/devices/cuda/math/bias_epilogue.h"

#include "headrace/devices/cuda/math/bias_calls.h"
#include "headrace/devices/cuda/math/cuda_launcher.cuh"

namespace headrace::cuda {

cudaError_t add_bias(const TensorView& y, const TensorView& bias, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_bias_activation(launch, y, bias, Activation::kNone);
  return launch.status();
}

template void GpuKernels<CudaLaunches>::bias_activation(Stream&, const char*, const TensorView&, const TensorView&,
                                                        Activation);

template void GpuKernels<CudaLaunches>::bias_gradient(Stream&, const char*, const TensorView&, const TensorView&);

}  // namespace headrace::cuda
