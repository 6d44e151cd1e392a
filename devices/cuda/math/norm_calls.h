// Batch normalisation of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooled_norm_work.h"

namespace headrace::cuda {

// An element is a channel.
struct PackStatistics {
  RealRows real;
  NormVectors norm;
  float* row;
  std::int64_t channels;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t channel) const {
    if (channel == 0) row[0] = static_cast<float>(real.count());
    const float inverse = norm.saved_inv_std[channel];
    row[1 + channel] = norm.saved_mean[channel];
    row[1 + channels + channel] = 1.0F / (inverse * inverse);
  }
};

// An element is a channel; replicas are joined in order.
struct JoinStatistics {
  const float* statistics;
  std::int64_t world_replicas, replica, channels;
  NormVectors norm;
  float* variance;
  float* inverse_counts;

  HEADRACE_HOST_DEVICE Moments<double> joined(std::int64_t channel) const {
    Moments<double> all{};
    for (std::int64_t r = 0; r < world_replicas; ++r) {
      const float* row = statistics + r * (1 + 2 * channels);
      const double count = static_cast<double>(row[0]);
      if (count == 0) continue;
      const double distance = static_cast<double>(row[1 + channel]) - all.mean, total = all.count + count;
      all.deviation += static_cast<double>(row[1 + channels + channel]) * count +
                       distance * distance * all.count * count / total;
      all.mean += distance * count / total;
      all.count = total;
    }
    return all;
  }

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t c) const {
    const Moments<double> all = joined(c);
    const bool any = all.count > 0;
    if (c == 0) {
      const float own = statistics[replica * (1 + 2 * channels)];
      inverse_counts[0] = own > 0 ? 1.0F / own : 0.0F;
      inverse_counts[1] = any ? static_cast<float>(1 / all.count) : 0.0F;
    }
    variance[c] = any ? static_cast<float>(all.deviation / all.count) : norm.running_var[c];
    norm.saved_mean[c] = any ? static_cast<float>(all.mean) : norm.running_mean[c];
    norm.saved_inv_std[c] = 1.0F / sqrtf(variance[c] + norm.epsilon);
    if (!any) return;
    follow(norm.running_mean[c], all.mean);
    follow(norm.running_var[c], all.deviation / (all.count > 1 ? all.count - 1 : 1));
  }
  HEADRACE_HOST_DEVICE void follow(float& running, double batch) const {
    const double momentum = static_cast<double>(norm.momentum);
    running = static_cast<float>(momentum * static_cast<double>(running) + (1 - momentum) * batch);
  }
};

// dx += offset + slope x in the real rows.
template <typename T>
struct JoinInputGradient {
  const T* x;
  T* dx;
  std::int64_t channels;
  RealRows real;
  NormVectors norm;
  const float* own;
  const float* joint;
  const float* inverse_counts;

  template <int kWidth>
  struct Affine {
    float offset[kWidth], slope[kWidth];
  };
  template <int kWidth>
  HEADRACE_HOST_DEVICE Affine<kWidth> begin(std::int64_t column) const {
    Affine<kWidth> affine;
    for (int k = 0; k < kWidth; ++k) {
      const std::int64_t c = column + k;
      const float inverse = norm.saved_inv_std[c], scale = norm.scale(c) * inverse;
      const float sums = difference_of_means(c), products = difference_of_means(channels + c);
      affine.slope[k] = scale * products * inverse;
      affine.offset[k] = scale * sums - affine.slope[k] * norm.saved_mean[c];
    }
    return affine;
  }
  // Returns this replica's mean minus that of all replicas; exactly 0 if no other replica has rows.
  HEADRACE_HOST_DEVICE float difference_of_means(std::int64_t at) const {
    return rounded_product(own[at], inverse_counts[0]) - rounded_product(joint[at], inverse_counts[1]);
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(const Affine<kWidth>& affine, std::int64_t row, std::int64_t column) const {
    if (row >= real.count()) return;
    const std::int64_t at = row * channels + column;
    const Pack<T, kWidth> from = load_pack<kWidth>(x + at);
    Pack<T, kWidth> pack = load_pack<kWidth>(dx + at);
    for (int k = 0; k < kWidth; ++k) {
      pack.values[k] = element_of<T>(value_of(pack.values[k]) +
                                     (affine.offset[k] + affine.slope[k] * value_of(from.values[k])));
    }
    store_pack(dx + at, pack);
  }
};

template <typename Launcher>
void submit_join_input_gradient(Launcher& launch, const TensorView& x, const Kernels::BatchNorm& norm,
                                const TensorView& own, const TensorView& joint, const TensorView& inverse_counts,
                                const StepScalars* scalars, const TensorView& dx) {
  by_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = x.shape.back();
    const JoinInputGradient<T> work{
        x.as<T>(),          dx.as<T>(),      channels,          real_rows(x, scalars),
        norm_vectors(norm), own.as<float>(), joint.as<float>(), inverse_counts.as<float>()};
    constexpr int kWidth = narrow_width(kPackWidth<T>);
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, x, dx), [&](auto width) {
      launch.template columns<width()>(work, column_grid(x.elements() / channels, channels, width()));
    });
  });
}

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
