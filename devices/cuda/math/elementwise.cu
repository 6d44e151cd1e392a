#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/elementwise_calls.h"
#include "headrace/devices/cuda/math/own_kernels.h"

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

cudaError_t add_bias(const TensorView& y, const TensorView& bias, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_bias_activation(launch, y, bias, Activation::kNone);
  return launch.status();
}

template void GpuKernels<CudaLaunches>::bias_activation(Stream&, const char*, const TensorView&, const TensorView&,
                                                        Activation);

template void GpuKernels<CudaLaunches>::bias_gradient(Stream&, const char*, const TensorView&, const TensorView&);

cudaError_t convert(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_convert(launch, from, to);
  return launch.status();
}

template void GpuKernels<CudaLaunches>::convert(Stream&, const TensorView&, const TensorView&);

}  // namespace headrace::cuda
