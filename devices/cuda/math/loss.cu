#include "headrace/devices/cuda/math/cuda_launches.cuh"
#include "headrace/devices/cuda/math/loss_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::softmax_cross_entropy(Stream&, const TensorView&, const TensorView&, float,
                                                              const StepScalars*, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::softmax(Stream&, const TensorView&, const TensorView&);

}  // namespace headrace::cuda
