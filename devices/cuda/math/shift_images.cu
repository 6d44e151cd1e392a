#include "headrace/devices/cuda/math/cuda_launches.cuh"
#include "headrace/devices/cuda/math/elementwise_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::shift_images(Stream&, const TensorView&, const ImageShift&,
                                                     const TensorView&);

}  // namespace headrace::cuda
