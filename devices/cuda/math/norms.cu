#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/norm_calls.h"
#include "headrace/devices/cuda/math/sequence_calls.h"

namespace headrace::cuda {

// The members whose bodies are included above.
template class GpuKernels<CudaLaunches>;

}  // namespace headrace::cuda
