#include "headrace/devices/cuda/math/count_calls.h"
#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/loss_calls.h"
#include "headrace/devices/cuda/math/optimizer_calls.h"

namespace headrace::cuda {

// The members whose bodies are included above.
template class GpuKernels<CudaLaunches>;

}  // namespace headrace::cuda
