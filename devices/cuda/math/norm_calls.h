// Batch normalisation of GpuKernels. Private to the CUDA backend.
#pragma once

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

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::BatchNormTrain& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.x),
                   [=](auto& launch, void* scratch) { submit_batch_norm_train(launch, of, scratch); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::BatchNormInfer& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) { submit_batch_norm_infer(launch, of); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::BatchNormBackward& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.x),
                   [=](auto& launch, void* scratch) { submit_batch_norm_backward(launch, of, scratch); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::PackStatistics& of) {
  const PackStatistics work{real_rows(of.x, of.scalars), norm_vectors(of.norm), of.row.as<float>(),
                            of.x.shape.back()};
  launches_.submit(stream, name_of(of), [work](auto& launch) { launch.template flat<1>(work, work.channels); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::JoinStatistics& of) {
  const std::int64_t channels = of.norm.saved_mean.elements();
  const JoinStatistics work{
      of.statistics.as<float>(), of.statistics.shape[0],       of.replica, channels, norm_vectors(of.norm),
      of.variance.as<float>(),   of.inverse_counts.as<float>()};
  launches_.submit(stream, name_of(of), [work](auto& launch) { launch.template flat<1>(work, work.channels); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::JoinInputGradient& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.x.dtype, [&](auto type) {
      using T = decltype(type);
      const std::int64_t channels = of.x.shape.back();
      const JoinInputGradient<T> work{of.x.as<T>(),
                                      of.dx.as<T>(),
                                      channels,
                                      real_rows(of.x, of.scalars),
                                      norm_vectors(of.norm),
                                      of.own.as<float>(),
                                      of.joint.as<float>(),
                                      of.inverse_counts.as<float>()};
      constexpr int kWidth = narrow_width(kPackWidth<T>);
      submit_columns<kWidth>(launch, work, of.x.elements() / channels, channels, of.x, of.dx);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::MaxPoolBatchNormTrain& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.pooled),
                   [=](auto& launch, void* scratch) { submit_max_pool_batch_norm_train(launch, of, scratch); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::MaxPoolBatchNormBackward& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.pooled),
                   [=](auto& launch, void* scratch) { submit_max_pool_batch_norm_backward(launch, of, scratch); });
}

}  // namespace headrace::cuda
