// Softmax and its cross-entropy, as Kernels has them, on the current device; all f32. Each returns the status of
// its launches. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

cudaError_t softmax(const TensorView& logits, const TensorView& probabilities, cudaStream_t stream);
// `scratch` is of loss_scratch_bytes(logits).
cudaError_t softmax_cross_entropy(const TensorView& logits, const TensorView& labels, float label_smoothing,
                                  const StepScalars* scalars, const TensorView& dlogits, MetricSums* sums,
                                  void* scratch, cudaStream_t stream);

}  // namespace headrace::cuda
