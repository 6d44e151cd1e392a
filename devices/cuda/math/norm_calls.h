// Batch normalisation of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooled_norm_work.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                            const StepScalars* scalars, const TensorView& y) {
  check::batch_norm_training("batch_norm_train", x, norm, kHalf);
  check::same("batch_norm_train", y, x, kHalf);
  launches_.submit(stream, "batch_norm_train", batch_norm_scratch_bytes(x), [=](auto& launch, void* scratch) {
    submit_batch_norm_train(launch, x, norm, scalars, y, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                            const TensorView& y) {
  check::batch_norm("batch_norm_infer", x, norm, kHalf);
  check::same("batch_norm_infer", y, x, kHalf);
  launches_.submit(stream, "batch_norm_infer", [=](auto& launch) { submit_batch_norm_infer(launch, x, norm, y); });
}

template <typename Launches>
void GpuKernels<Launches>::batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy,
                                               const BatchNorm& norm, const StepScalars* scalars,
                                               const TensorView& dgamma, const TensorView& dbeta,
                                               const TensorView& dx) {
  check::batch_norm_training("batch_norm_backward", x, norm, kHalf);
  for (const TensorView& view : {dy, dx}) check::same("batch_norm_backward", view, x, kHalf);
  check::norm_gradients("batch_norm_backward", dgamma, dbeta, x);
  launches_.submit(stream, "batch_norm_backward", batch_norm_scratch_bytes(x), [=](auto& launch, void* scratch) {
    submit_batch_norm_backward(launch, x, dy, norm, scalars, dgamma, dbeta, dx, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::max_pool_batch_norm_train(Stream& stream, const TensorView& x, const MaxPool& pool,
                                                     const TensorView& pooled, const BatchNorm& norm,
                                                     const StepScalars* scalars, const TensorView& y) {
  check::max_pool_batch_norm("max_pool_batch_norm_train", x, pool, pooled, norm, y, kHalf);
  launches_.submit(stream, "max_pool_batch_norm_train", batch_norm_scratch_bytes(pooled),
                   [=](auto& launch, void* scratch) {
                     submit_max_pool_batch_norm_train(launch, x, pool, pooled, norm, scalars, y, scratch);
                   });
}

template <typename Launches>
void GpuKernels<Launches>::max_pool_batch_norm_backward(Stream& stream, const TensorView& pooled,
                                                        const TensorView& dy, const BatchNorm& norm,
                                                        const StepScalars* scalars, const TensorView& dgamma,
                                                        const TensorView& dbeta, const MaxPool& pool,
                                                        const TensorView& dx) {
  check::max_pool_batch_norm("max_pool_batch_norm_backward", dx, pool, pooled, norm, dy, kHalf);
  check::norm_gradients("max_pool_batch_norm_backward", dgamma, dbeta, pooled);
  launches_.submit(
      stream, "max_pool_batch_norm_backward", batch_norm_scratch_bytes(pooled), [=](auto& launch, void* scratch) {
        submit_max_pool_batch_norm_backward(launch, pooled, dy, norm, scalars, dgamma, dbeta, pool, dx, scratch);
      });
}

}  // namespace headrace::cuda
