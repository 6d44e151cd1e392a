#include "headrace/devices/cuda/math/count_calls.h"
#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/loss_calls.h"
#include "headrace/devices/cuda/math/optimizer_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::softmax_cross_entropy(Stream&, const TensorView&, const TensorView&, float,
                                                              const ExampleRows&, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::softmax(Stream&, const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::softmax_backward(Stream&, const TensorView&, const TensorView&,
                                                         const TensorView&);
template void GpuKernels<CudaLaunches>::soft_cross_entropy(Stream&, const TensorView&, const TensorView&, float,
                                                           const ExampleRows&, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::element_loss(Stream&, ElementLoss, const TensorView&, const TensorView&,
                                                     float, const ExampleRows&, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::cosine_loss(Stream&, const TensorView&, const TensorView&,
                                                    const ExampleRows&, const TensorView&, MetricSums*);
template void GpuKernels<CudaLaunches>::add_losses(Stream&, const TensorView&, const ExampleRows&, MetricSums*);

template void GpuKernels<CudaLaunches>::count_top(Stream&, const TensorView&, const TensorView&, int,
                                                  const ExampleRows&, MetricSums*);
template void GpuKernels<CudaLaunches>::count_confusions(Stream&, const TensorView&, const TensorView&,
                                                         const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::count_scores(Stream&, const TensorView&, const TensorView&,
                                                     const ScoreBuckets&, const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::example_weights(Stream&, const TensorView&, std::span<const float>,
                                                        const TensorView&, const TensorView&);

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
