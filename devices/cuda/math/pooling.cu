#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/pooling_calls.h"

namespace headrace::cuda {

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
