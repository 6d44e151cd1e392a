#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/elementwise_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::activation_forward(Stream&, Activation, const TensorView&,
                                                           const TensorView&);
template void GpuKernels<CudaLaunches>::activation_backward(Stream&, Activation, const TensorView&,
                                                            const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::add(Stream&, const TensorView&, const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::accumulate(Stream&, const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::sum_tree(Stream&, std::span<const TensorView>, const TensorView&);
template void GpuKernels<CudaLaunches>::scale(Stream&, const TensorView&, const Factor&, const TensorView&);

template void GpuKernels<CudaLaunches>::dropout(Stream&, const TensorView&, float, std::uint64_t, int,
                                                const StepScalars*, const TensorView&);

template void GpuKernels<CudaLaunches>::shift_images(Stream&, const TensorView&, const ImageShift&,
                                                     const TensorView&);

}  // namespace headrace::cuda
