#include "headrace/devices/cuda/math/cuda_launches.cuh"
#include "headrace/devices/cuda/math/optimizer_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::adam(Stream&, const Parameters&, const TensorView&, const TensorView&,
                                             const TensorView&, std::span<const UpdateRange<AdamOptions>>,
                                             const StepScalars*);
template void GpuKernels<CudaLaunches>::sgd(Stream&, const Parameters&, const TensorView&, const TensorView&,
                                            std::span<const UpdateRange<SgdOptions>>, const StepScalars*);

}  // namespace headrace::cuda
