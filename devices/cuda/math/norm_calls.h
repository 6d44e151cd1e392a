// Batch normalisation of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/joint_norm_work.h"
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
void GpuKernels<Launches>::pack_statistics(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                           const StepScalars* scalars, const TensorView& row) {
  check::batch_norm_training("pack_statistics", x, norm, kHalf);
  check::numbers("pack_statistics", "row", row, 1 + 2 * x.shape.back());
  const PackStatistics work{real_rows(x, scalars), norm_vectors(norm), row.as<float>(), x.shape.back()};
  launches_.submit(stream, "pack_statistics",
                   [work](auto& launch) { launch.template flat<1>(work, work.channels); });
}

template <typename Launches>
void GpuKernels<Launches>::join_statistics(Stream& stream, const TensorView& statistics, int replica,
                                           const BatchNorm& norm, const TensorView& variance,
                                           const TensorView& inverse_counts) {
  check::statistics("join_statistics", statistics, replica, norm);
  const std::int64_t channels = norm.saved_mean.elements();
  check::numbers("join_statistics", "variance", variance, channels);
  check::numbers("join_statistics", "inverse_counts", inverse_counts, 2);
  const JoinStatistics work{
      statistics.as<float>(), statistics.shape[0],       replica, channels, norm_vectors(norm),
      variance.as<float>(),   inverse_counts.as<float>()};
  launches_.submit(stream, "join_statistics",
                   [work](auto& launch) { launch.template flat<1>(work, work.channels); });
}

template <typename Launches>
void GpuKernels<Launches>::join_input_gradient(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                               const TensorView& own, const TensorView& joint,
                                               const TensorView& inverse_counts, const StepScalars* scalars,
                                               const TensorView& dx) {
  check::batch_norm_training("join_input_gradient", x, norm, kHalf);
  check::same("join_input_gradient", dx, x, kHalf);
  for (const TensorView& sums : {own, joint}) {
    check::numbers("join_input_gradient", "sums", sums, 2 * x.shape.back());
  }
  check::numbers("join_input_gradient", "inverse_counts", inverse_counts, 2);
  launches_.submit(stream, "join_input_gradient", [=](auto& launch) {
    submit_join_input_gradient(launch, x, norm, own, joint, inverse_counts, scalars, dx);
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
