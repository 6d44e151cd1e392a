#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/loss_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::softmax_cross_entropy(Stream&, const TensorView&, const TensorView&, float,
                                                              const StepScalars*, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::softmax(Stream&, const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::softmax_backward(Stream&, const TensorView&, const TensorView&,
                                                         const TensorView&);
template void GpuKernels<CudaLaunches>::soft_cross_entropy(Stream&, const TensorView&, const TensorView&, float,
                                                           const StepScalars*, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::element_loss(Stream&, ElementLoss, const TensorView&, const TensorView&,
                                                     float, const StepScalars*, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::add_losses(Stream&, const TensorView&, const StepScalars*, MetricSums*);

template void GpuKernels<CudaLaunches>::count_top(Stream&, const TensorView&, const TensorView&, int,
                                                  const StepScalars*, MetricSums*);
template void GpuKernels<CudaLaunches>::count_confusions(Stream&, const TensorView&, const TensorView&,
                                                         const StepScalars*, const TensorView&);

}  // namespace headrace::cuda
