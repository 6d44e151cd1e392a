#include "headrace/devices/cuda/math/count_calls.h"
#include "headrace/devices/cuda/math/cuda_launches.cuh"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::count_top(Stream&, const TensorView&, const TensorView&, int,
                                                  const StepScalars*, MetricSums*);
template void GpuKernels<CudaLaunches>::count_confusions(Stream&, const TensorView&, const TensorView&,
                                                         const StepScalars*, const TensorView&);

}  // namespace headrace::cuda
