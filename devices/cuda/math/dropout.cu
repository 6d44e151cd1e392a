#include "headrace/devices/cuda/math/cuda_launches.cuh"
#include "headrace/devices/cuda/math/elementwise_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::dropout(Stream&, const TensorView&, float, std::uint64_t, int,
                                                const StepScalars*, const TensorView&);

}  // namespace headrace::cuda
