#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/direct_convolution_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::direct_conv_forward(Stream&, const TensorView&, const TensorView&,
                                                            const TensorView&, const TensorView&,
                                                            const ConvOptions&, Activation);
template void GpuKernels<CudaLaunches>::conv_bias_backward(Stream&, const TensorView&, const TensorView&,
                                                           const TensorView&, const TensorView&, const TensorView&,
                                                           const ConvOptions&, Activation);

}  // namespace headrace::cuda
