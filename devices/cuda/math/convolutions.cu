#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/depthwise_calls.h"
#include "headrace/devices/cuda/math/direct_convolution_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::depthwise_forward(Stream&, const TensorView&, const TensorView&,
                                                          const TensorView&, const TensorView&, const ConvOptions&,
                                                          Activation);
template void GpuKernels<CudaLaunches>::depthwise_backward_data(Stream&, const TensorView&, const TensorView&,
                                                                const TensorView&, const ConvOptions&);
template void GpuKernels<CudaLaunches>::depthwise_backward_weights(Stream&, const TensorView&, const TensorView&,
                                                                   const TensorView&, const TensorView&,
                                                                   const ConvOptions&);

template void GpuKernels<CudaLaunches>::direct_conv_forward(Stream&, const TensorView&, const TensorView&,
                                                            const TensorView&, const TensorView&,
                                                            const ConvOptions&, Activation);
template void GpuKernels<CudaLaunches>::conv_bias_backward(Stream&, const TensorView&, const TensorView&,
                                                           const TensorView&, const TensorView&, const TensorView&,
                                                           const ConvOptions&, Activation);

}  // namespace headrace::cuda
