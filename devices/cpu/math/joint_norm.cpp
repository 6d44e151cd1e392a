#include "headrace/devices/cpu/math/batch_norm.h"

#include <cmath>

#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

struct JoinedMoments {
  double count = 0, mean = 0, deviation = 0;  // deviation: the sum of squared distances from the mean
};

// Adds replicas in order.
JoinedMoments joined(const float* statistics, std::int64_t world_replicas, std::int64_t channels,
                     std::int64_t channel) {
  JoinedMoments all;
  for (std::int64_t r = 0; r < world_replicas; ++r) {
    const float* row = statistics + r * (1 + 2 * channels);
    const auto count = static_cast<double>(row[0]);
    if (count == 0) continue;
    const double mean = static_cast<double>(row[1 + channel]);
    const double distance = mean - all.mean, total = all.count + count;
    all.deviation +=
        static_cast<double>(row[1 + channels + channel]) * count + distance * distance * all.count * count / total;
    all.mean += distance * count / total;
    all.count = total;
  }
  return all;
}

void follow(float& running, double batch, float momentum) {
  running = static_cast<float>(static_cast<double>(momentum) * static_cast<double>(running) +
                               (1 - static_cast<double>(momentum)) * batch);
}

template <typename T>
HEADRACE_INLINE void add_affine_each(const T* x, const float* offset, const float* slope, T* dx, std::int64_t rows,
                                     std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t at = row * channels + c;
      dx[at] = element<T>(value(dx[at]) + (offset[c] + slope[c] * value(x[at])));
    }
  }
}
HEADRACE_SIMD_MATH void add_affine(const float* x, const float* offset, const float* slope, float* dx,
                                   std::int64_t rows, std::int64_t channels) {
  add_affine_each(x, offset, slope, dx, rows, channels);
}
HEADRACE_SIMD_MATH void add_affine(const BFloat16* x, const float* offset, const float* slope, BFloat16* dx,
                                   std::int64_t rows, std::int64_t channels) {
  add_affine_each(x, offset, slope, dx, rows, channels);
}

}  // namespace

void pack_statistics(const NormRows& rows, const Kernels::BatchNorm& norm, float* row) {
  row[0] = static_cast<float>(rows.real);
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    const float inverse = norm.saved_inv_std.as<float>()[c];
    row[1 + c] = norm.saved_mean.as<float>()[c];
    row[1 + rows.channels + c] = 1 / (inverse * inverse);
  }
}

void join_statistics(const float* statistics, std::int64_t world_replicas, std::int64_t replica,
                     const Kernels::BatchNorm& norm, float* variance, float* inverse_counts) {
  const std::int64_t channels = norm.saved_mean.elements();
  double count = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const JoinedMoments all = joined(statistics, world_replicas, channels, c);
    float &mean = norm.running_mean.as<float>()[c], &running = norm.running_var.as<float>()[c];
    count = all.count;
    variance[c] = count > 0 ? static_cast<float>(all.deviation / count) : running;
    norm.saved_mean.as<float>()[c] = count > 0 ? static_cast<float>(all.mean) : mean;
    norm.saved_inv_std.as<float>()[c] = 1 / std::sqrt(variance[c] + norm.epsilon);
    if (count == 0) continue;
    follow(mean, all.mean, norm.momentum);
    follow(running, all.deviation / (count > 1 ? count - 1 : 1), norm.momentum);
  }
  const float own = statistics[replica * (1 + 2 * channels)];
  inverse_counts[0] = own > 0 ? 1 / own : 0.0F;
  inverse_counts[1] = count > 0 ? static_cast<float>(1 / count) : 0.0F;
}

template <typename T>
void join_input_gradient(const NormRows& rows, const T* x, const Kernels::BatchNorm& norm, const float* own,
                         const float* joint, const float* inverse_counts, T* dx) {
  const std::int64_t channels = rows.channels;
  float* offset = workspace_floats(2 * channels);
  float* slope = offset + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    const float inverse = norm.saved_inv_std.as<float>()[c], scale = gamma_of(norm, c) * inverse;
    const float sums = own[c] * inverse_counts[0] - joint[c] * inverse_counts[1];
    const float products = own[channels + c] * inverse_counts[0] - joint[channels + c] * inverse_counts[1];
    slope[c] = scale * products * inverse;
    offset[c] = scale * sums - slope[c] * norm.saved_mean.as<float>()[c];
  }
  parallel_ranges(rows.real, row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
    add_affine(x + begin * channels, offset, slope, dx + begin * channels, end - begin, channels);
  });
}

template void join_input_gradient(const NormRows&, const float*, const Kernels::BatchNorm&, const float*,
                                  const float*, const float*, float*);
template void join_input_gradient(const NormRows&, const BFloat16*, const Kernels::BatchNorm&, const float*,
                                  const float*, const float*, BFloat16*);

}  // namespace headrace::cpu
