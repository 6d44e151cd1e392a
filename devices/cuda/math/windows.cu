#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/depthwise_calls.h"
#include "headrace/devices/cuda/math/direct_convolution_calls.h"
#include "headrace/devices/cuda/math/pooling_calls.h"

namespace headrace::cuda {

// The members whose bodies are included above.
template class GpuKernels<CudaLaunches>;

}  // namespace headrace::cuda
