#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/optimizer_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::adam(Stream&, const Parameters&, const TensorView&, const TensorView&,
                                             const TensorView&, std::span<const UpdateRange<AdamOptions>>,
                                             const StepScalars*);
template void GpuKernels<CudaLaunches>::sgd(Stream&, const Parameters&, const TensorView&, const TensorView&,
                                            std::span<const UpdateRange<SgdOptions>>, const StepScalars*);

template void GpuKernels<CudaLaunches>::add_squares(Stream&, const TensorView&, GradientNorm*);
template void GpuKernels<CudaLaunches>::clip_factor(Stream&, float, GradientNorm*);
template void GpuKernels<CudaLaunches>::clamp(Stream&, const TensorView&, float);
template void GpuKernels<CudaLaunches>::average(Stream&, const TensorView&, const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::look_ahead(Stream&, const Parameters&, const StepScalars*,
                                                   const TensorView&);

}  // namespace headrace::cuda
