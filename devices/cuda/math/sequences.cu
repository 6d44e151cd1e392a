#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/sequence_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::mask_scores(Stream&, const TensorView&, const TensorView&, bool);
template void GpuKernels<CudaLaunches>::layer_norm_forward(Stream&, const TensorView&, const LayerNorm&,
                                                           const TensorView&);
template void GpuKernels<CudaLaunches>::layer_norm_backward(Stream&, const TensorView&, const TensorView&,
                                                            const LayerNorm&, const TensorView&, const TensorView&,
                                                            const TensorView&);
template void GpuKernels<CudaLaunches>::embed(Stream&, const TensorView&, const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::embed_backward(Stream&, const TensorView&, const TensorView&,
                                                       const TensorView&);

}  // namespace headrace::cuda
