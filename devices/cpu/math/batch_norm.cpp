// Batch normalisation with the statistics of one replica or several.
#include <algorithm>
#include <cmath>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/batch_norm.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/vector_math.h"

namespace headrace::cpu {
namespace {

struct Moments {
  double mean[kNormStrip] = {};
  double deviation[kNormStrip] = {};  // sum of squared distances from the mean
};

// Adds one block to the moments of the `before` rows above it (Chan, Golub, LeVeque): the block's own mean is
// taken off before squaring, so a large common offset costs no digits.
template <typename T>
HEADRACE_INLINE void add_moments(const T* x, Moments& moments, std::int64_t before, std::int64_t rows,
                                 std::int64_t channels, std::int64_t width) {
  float mean[kNormStrip] = {};
  float deviation[kNormStrip] = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) mean[c] += value(x[row * channels + c]);
  }
  const float share = 1.0F / static_cast<float>(rows);
  for (std::int64_t c = 0; c < width; ++c) mean[c] *= share;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) {
      const float distance = value(x[row * channels + c]) - mean[c];
      deviation[c] += distance * distance;
    }
  }
  const double added = static_cast<double>(rows) / static_cast<double>(before + rows);
  const double spread = added * static_cast<double>(before);
  for (std::int64_t c = 0; c < width; ++c) {
    const double step = static_cast<double>(mean[c]) - moments.mean[c];
    moments.mean[c] += step * added;
    moments.deviation[c] += static_cast<double>(deviation[c]) + step * step * spread;
  }
}

template <typename T>
HEADRACE_INLINE void add_blocks_of(const T* x, Moments& moments, std::int64_t rows, std::int64_t channels,
                                   std::int64_t width) {
  for (std::int64_t row = 0; row < rows; row += kSumBlock) {
    const std::int64_t count = rows - row < kSumBlock ? rows - row : kSumBlock;
    if (width == kNormStrip) {
      add_moments(x + row * channels, moments, row, count, channels, kNormStrip);
    } else {
      add_moments(x + row * channels, moments, row, count, channels, width);
    }
  }
}

HEADRACE_SIMD_MATH void strip_moments(const float* x, Moments& moments, std::int64_t rows, std::int64_t channels,
                                      std::int64_t width) {
  add_blocks_of(x, moments, rows, channels, width);
}
HEADRACE_SIMD_MATH void strip_moments(const BFloat16* x, Moments& moments, std::int64_t rows,
                                      std::int64_t channels, std::int64_t width) {
  add_blocks_of(x, moments, rows, channels, width);
}

// Computes the batch's mean and 1 / deviation of `width` channels from `channel` on, and updates the running
// statistics.
template <typename T>
void strip_statistics(const NormRows& rows, const T* x, const kernel::BatchNorm& norm, std::int64_t channel,
                      std::int64_t width) {
  Moments moments;
  strip_moments(x + channel, moments, rows.real, rows.channels, width);
  const auto count = static_cast<double>(rows.real);
  const double momentum = static_cast<double>(norm.momentum);
  const auto follow = [momentum](float& running, double batch) {
    running = static_cast<float>(momentum * static_cast<double>(running) + (1 - momentum) * batch);
  };
  for (std::int64_t c = 0; c < width; ++c) {
    const double variance = moments.deviation[c] / count;
    norm.saved_mean.as<float>()[channel + c] = static_cast<float>(moments.mean[c]);
    norm.saved_inv_std.as<float>()[channel + c] =
        static_cast<float>(1 / std::sqrt(variance + static_cast<double>(norm.epsilon)));
    follow(norm.running_mean.as<float>()[channel + c], moments.mean[c]);
    follow(norm.running_var.as<float>()[channel + c], moments.deviation[c] / std::max(1.0, count - 1));
  }
}

template <Activation kActivation, typename T>
HEADRACE_INLINE void normalize_rows(const T* x, const NormAffine& by, T* y, std::int64_t rows,
                                    std::int64_t channels) {
  const float* mean = by.mean;
  const float* scale = by.scale;
  const float* beta = by.beta;
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      y[c] = element<T>(activated<kActivation>((value(x[c]) - mean[c]) * scale[c] + beta[c]));
    }
  }
}

template <typename T>
HEADRACE_INLINE void normalize_as(Activation activation, const T* x, const NormAffine& by, T* y, std::int64_t rows,
                                  std::int64_t channels) {
  switch (activation) {
    case Activation::kNone: return normalize_rows<Activation::kNone>(x, by, y, rows, channels);
    case Activation::kRelu: return normalize_rows<Activation::kRelu>(x, by, y, rows, channels);
    case Activation::kGelu: return normalize_rows<Activation::kGelu>(x, by, y, rows, channels);
    case Activation::kSilu: return normalize_rows<Activation::kSilu>(x, by, y, rows, channels);
    default: break;  // is_fused() is checked
  }
}

HEADRACE_SIMD_MATH void normalize_range(Activation activation, const float* x, const NormAffine& by, float* y,
                                        std::int64_t rows, std::int64_t channels) {
  normalize_as(activation, x, by, y, rows, channels);
}
HEADRACE_SIMD_MATH void normalize_range(Activation activation, const BFloat16* x, const NormAffine& by,
                                        BFloat16* y, std::int64_t rows, std::int64_t channels) {
  normalize_as(activation, x, by, y, rows, channels);
}

template <typename T>
void normalize(const NormRows& rows, Activation activation, const T* x, const NormAffine& by, T* y) {
  const std::int64_t channels = rows.channels;
  parallel_ranges(rows.rows, row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
    normalize_range(activation, x + begin * channels, by, y + begin * channels, end - begin, channels);
  });
}

// Processes one strip of channels per call.
template <typename Function>
void parallel_strips(const NormRows& rows, const Function& function) {
  const std::int64_t strips = (rows.channels + kNormStrip - 1) / kNormStrip;
  parallel_ranges(strips, row_grain(rows.real * kNormStrip), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t channel = first * kNormStrip; channel < std::min(rows.channels, last * kNormStrip);
         channel += kNormStrip) {
      function(channel, std::min(kNormStrip, rows.channels - channel));
    }
  });
}

// Without real rows the running statistics replace the batch's.
void borrow_running_statistics(const NormRows& rows, const kernel::BatchNorm& norm) {
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    norm.saved_mean.as<float>()[c] = norm.running_mean.as<float>()[c];
    norm.saved_inv_std.as<float>()[c] = 1 / std::sqrt(norm.running_var.as<float>()[c] + norm.epsilon);
  }
}

template <typename T>
void batch_norm_train(const NormRows& rows, const T* x, const kernel::BatchNorm& norm, T* y) {
  if (rows.real == 0) {
    borrow_running_statistics(rows, norm);
  } else {
    parallel_strips(
        rows, [&](std::int64_t channel, std::int64_t width) { strip_statistics(rows, x, norm, channel, width); });
  }
  float* scale = workspace_floats(rows.channels);
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    scale[c] = gamma_of(norm, c) * norm.saved_inv_std.as<float>()[c];
  }
  normalize(rows, norm.activation, x, {norm.saved_mean.as<float>(), scale, norm.beta.as<float>()}, y);
}

template <typename T>
void batch_norm_infer(const NormRows& rows, const T* x, const kernel::BatchNorm& norm, T* y) {
  float* scale = workspace_floats(rows.channels);
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    scale[c] = gamma_of(norm, c) / std::sqrt(norm.running_var.as<float>()[c] + norm.epsilon);
  }
  normalize(rows, norm.activation, x, {norm.running_mean.as<float>(), scale, norm.beta.as<float>()}, y);
}

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

void pack_statistics(const NormRows& rows, const kernel::BatchNorm& norm, float* row) {
  row[0] = static_cast<float>(rows.real);
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    const float inverse = norm.saved_inv_std.as<float>()[c];
    row[1 + c] = norm.saved_mean.as<float>()[c];
    row[1 + rows.channels + c] = 1 / (inverse * inverse);
  }
}

void join_statistics(const float* statistics, std::int64_t world_replicas, std::int64_t replica,
                     const kernel::BatchNorm& norm, float* variance, float* inverse_counts) {
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
void join_input_gradient(const NormRows& rows, const T* x, const kernel::BatchNorm& norm, const float* own,
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

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::BatchNormTrain& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::batch_norm_train(norm_rows(of.x, of.scalars->rows), of.x.as<T>(), of.norm, of.y.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::BatchNormInfer& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::batch_norm_infer(norm_rows(of.x, of.x.shape[0]), of.x.as<T>(), of.norm, of.y.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::PackStatistics& of) {
  submit(stream, [=] { cpu::pack_statistics(norm_rows(of.x, of.scalars->rows), of.norm, f32(of.row)); });
}

void CpuKernels::run(Stream& stream, const kernel::JoinStatistics& of) {
  submit(stream, [=] {
    cpu::join_statistics(f32(of.statistics), of.statistics.shape[0], of.replica, of.norm, f32(of.variance),
                         f32(of.inverse_counts));
  });
}

void CpuKernels::run(Stream& stream, const kernel::JoinInputGradient& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::join_input_gradient(norm_rows(of.x, of.scalars->rows), of.x.as<T>(), of.norm, f32(of.own),
                               f32(of.joint), f32(of.inverse_counts), of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::MaxPoolBatchNormTrain& of) {
  run(stream, kernel::MaxPoolForward{of.x, of.pooled, of.pool.argmax, of.pool.options});
  run(stream, kernel::BatchNormTrain{of.pooled, of.y, of.norm, of.scalars});
}

void CpuKernels::run(Stream& stream, const kernel::MaxPoolBatchNormBackward& of) {
  run(stream, kernel::BatchNormBackward{of.pooled, of.dy, of.dgamma, of.dbeta, of.dy, of.norm, of.scalars});
  run(stream, kernel::MaxPoolBackward{of.dy, of.pool.argmax, of.dx, of.pool.options});
}

}  // namespace headrace::cpu
