#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/depthwise_calls.h"
#include "headrace/devices/cuda/math/direct_convolution_calls.h"
#include "headrace/devices/cuda/math/pooling_calls.h"

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

template void GpuKernels<CudaLaunches>::max_pool_forward(Stream&, const TensorView&, const TensorView&,
                                                         const TensorView&, const PoolOptions&);
template void GpuKernels<CudaLaunches>::max_pool_backward(Stream&, const TensorView&, const TensorView&,
                                                          const TensorView&, const PoolOptions&);
template void GpuKernels<CudaLaunches>::average_pool_forward(Stream&, const TensorView&, const TensorView&,
                                                             const PoolOptions&);
template void GpuKernels<CudaLaunches>::average_pool_backward(Stream&, const TensorView&, const TensorView&,
                                                              const PoolOptions&);
template void GpuKernels<CudaLaunches>::copy_columns(Stream&, const TensorView&, std::int64_t, const TensorView&,
                                                     std::int64_t, std::int64_t);
template void GpuKernels<CudaLaunches>::global_average_pool_forward(Stream&, const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::global_average_pool_backward(Stream&, const TensorView&,
                                                                     const TensorView&);

}  // namespace headrace::cuda
