#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/depthwise_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::depthwise_forward(Stream&, const TensorView&, const TensorView&,
                                                          const TensorView&, const TensorView&, const ConvOptions&,
                                                          Activation);
template void GpuKernels<CudaLaunches>::depthwise_backward_data(Stream&, const TensorView&, const TensorView&,
                                                                const TensorView&, const ConvOptions&);
template void GpuKernels<CudaLaunches>::depthwise_backward_weights(Stream&, const TensorView&, const TensorView&,
                                                                   const TensorView&, const TensorView&,
                                                                   const ConvOptions&);

}  // namespace headrace::cuda
