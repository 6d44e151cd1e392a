#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/norm_calls.h"
#include "headrace/devices/cuda/math/sequence_calls.h"

namespace headrace::cuda {

template void GpuKernels<CudaLaunches>::batch_norm_train(Stream&, const TensorView&, const BatchNorm&,
                                                         const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::batch_norm_infer(Stream&, const TensorView&, const BatchNorm&,
                                                         const TensorView&);
template void GpuKernels<CudaLaunches>::batch_norm_backward(Stream&, const TensorView&, const TensorView&,
                                                            const BatchNorm&, const StepScalars*,
                                                            const TensorView&, const TensorView&,
                                                            const TensorView&);
template void GpuKernels<CudaLaunches>::pack_statistics(Stream&, const TensorView&, const BatchNorm&,
                                                        const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::join_statistics(Stream&, const TensorView&, int, const BatchNorm&,
                                                        const TensorView&, const TensorView&);
template void GpuKernels<CudaLaunches>::join_input_gradient(Stream&, const TensorView&, const BatchNorm&,
                                                            const TensorView&, const TensorView&,
                                                            const TensorView&, const StepScalars*,
                                                            const TensorView&);

template void GpuKernels<CudaLaunches>::max_pool_batch_norm_train(Stream&, const TensorView&, const MaxPool&,
                                                                  const TensorView&, const BatchNorm&,
                                                                  const StepScalars*, const TensorView&);
template void GpuKernels<CudaLaunches>::max_pool_batch_norm_backward(Stream&, const TensorView&, const TensorView&,
                                                                     const BatchNorm&, const StepScalars*,
                                                                     const TensorView&, const TensorView&,
                                                                     const MaxPool&, const TensorView&);

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
