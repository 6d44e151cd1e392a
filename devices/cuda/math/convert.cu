#include "headrace/devices/cuda/math/convert.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/elementwise_calls.h"

namespace headrace::cuda {

cudaError_t convert(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_convert(launch, from, to);
  return launch.status();
}

template void GpuKernels<CudaLaunches>::convert(Stream&, const TensorView&, const TensorView&);

}  // namespace headrace::cuda
