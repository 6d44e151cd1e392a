// The losses of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/element_loss_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/loss_work.h"
#include "headrace/devices/cuda/math/soft_loss_work.h"

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

template <typename Launches>
void GpuKernels<Launches>::softmax_backward(Stream& stream, const TensorView& p, const TensorView& dy,
                                            const TensorView& dx) {
  for (const TensorView& view : {p, dy, dx}) check::same("softmax_backward", view, p);
  launches_.submit(stream, "softmax_backward", [=](auto& launch) { submit_softmax_backward(launch, p, dy, dx); });
}

template <typename Launches>
void GpuKernels<Launches>::soft_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& targets,
                                              float label_smoothing, const StepScalars* scalars,
                                              const TensorView& dlogits, MetricSums* sums) {
  check::soft_loss("soft_cross_entropy", logits, targets, dlogits);
  launches_.submit(stream, "soft_cross_entropy", loss_scratch_bytes(logits), [=](auto& launch, void* scratch) {
    submit_soft_cross_entropy(launch, logits, targets, label_smoothing, scalars, dlogits, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::element_loss(Stream& stream, ElementLoss loss, const TensorView& x,
                                        const TensorView& targets, float label_smoothing,
                                        const StepScalars* scalars, const TensorView& dx, MetricSums* sums) {
  check::element_loss("element_loss", x, targets, dx);
  launches_.submit(stream, "element_loss", loss_scratch_bytes(x), [=](auto& launch, void* scratch) {
    by_element_loss(loss, [&](auto which) {
      if (targets.dtype == DType::kF32) {
        submit_element_loss(launch, which, x, targets.as<float>(), label_smoothing, scalars, dx, sums, scratch);
      } else {
        submit_element_loss(launch, which, x, targets.as<std::int64_t>(), label_smoothing, scalars, dx, sums,
                            scratch);
      }
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::add_losses(Stream& stream, const TensorView& losses, const StepScalars* scalars,
                                      MetricSums* sums) {
  check::example_losses("add_losses", losses);
  launches_.submit(stream, "add_losses", [=](auto& launch) {
    launch.total(GivenLosses{losses.as<float>(), losses.shape[0], scalars, sums});
  });
}

}  // namespace headrace::cuda
