#include "headrace/devices/cuda/math/count_calls.h"
#include "headrace/devices/cuda/math/cuda_launcher.cuh"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::count_top(Stream&, const TensorView&, const TensorView&, int,
                                                  const ExampleRows&, MetricSums*);
template void GpuKernels<CudaLaunches>::count_confusions(Stream&, const TensorView&, const TensorView&,
                                                         const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::count_scores(Stream&, const TensorView&, const TensorView&,
                                                     const ScoreBuckets&, const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::example_weights(Stream&, const TensorView&, std::span<const float>,
                                                        const TensorView&, const TensorView&);

}  // namespace headrace::cuda
