#include "headrace/devices/cuda/math/bias_calls.h"
#include "headrace/devices/cuda/math/cuda_launches.cuh"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::bias_gradient(Stream&, const char*, const TensorView&, const TensorView&);

}  // namespace headrace::cuda
