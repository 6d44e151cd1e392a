// The loss of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::softmax_cross_entropy(Stream& stream, const TensorView& logits,
                                                 const TensorView& labels, float label_smoothing,
                                                 const StepScalars* scalars, const TensorView& dlogits,
                                                 MetricSums* sums) {
  check::loss("softmax_cross_entropy", logits, labels);
  if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
  launches_.submit(stream, "softmax_cross_entropy", loss_scratch_bytes(logits), [=](auto& launch, void* scratch) {
    submit_cross_entropy(launch, logits, labels, label_smoothing, scalars, dlogits, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) {
  for (const TensorView& view : {logits, probabilities}) check::same("softmax", view, logits);
  launches_.submit(stream, "softmax", [=](auto& launch) { submit_softmax(launch, logits, probabilities); });
}

}  // namespace headrace::cuda
