#include "headrace/devices/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/devices/cpu/column_sums.h"
#include "headrace/devices/cpu/parallel.h"
#include "headrace/devices/cpu/simd.h"
#include "headrace/devices/cpu/workspace.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kStrip = 64;  // channels at a time: one block of rows of them stays in the first cache

struct Moments {
  double mean[kStrip] = {};
  double deviation[kStrip] = {};  // sum of squared distances from the mean
};

// Adds one block to the moments of the `before` rows above it (Chan, Golub, LeVeque): the block's own mean is
// taken off before squaring, so a large common offset costs no digits.
HEADRACE_INLINE void add_block(const float* x, Moments& moments, std::int64_t before, std::int64_t rows,
                               std::int64_t channels, std::int64_t width) {
  float mean[kStrip] = {};
  float deviation[kStrip] = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) mean[c] += x[row * channels + c];
  }
  const float share = 1.0F / static_cast<float>(rows);
  for (std::int64_t c = 0; c < width; ++c) mean[c] *= share;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) {
      const float distance = x[row * channels + c] - mean[c];
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

HEADRACE_SIMD void strip_moments(const float* x, Moments& moments, std::int64_t rows, std::int64_t channels,
                                 std::int64_t width) {
  for (std::int64_t row = 0; row < rows; row += kSumBlock) {
    const std::int64_t count = rows - row < kSumBlock ? rows - row : kSumBlock;
    if (width == kStrip) {
      add_block(x + row * channels, moments, row, count, channels, kStrip);
    } else {
      add_block(x + row * channels, moments, row, count, channels, width);
    }
  }
}

// The batch's mean and 1 / deviation of `width` channels from `channel` on, and what they do to the running ones.
void strip_statistics(const NormRows& rows, const float* x, const Kernels::BatchNorm& norm, std::int64_t channel,
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

// y = (x - mean) * scale + beta
HEADRACE_SIMD void normalize_range(const float* x, const float* mean, const float* scale, const float* beta,
                                   float* y, std::int64_t rows, std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) y[c] = (x[c] - mean[c]) * scale[c] + beta[c];
  }
}

void normalize(const NormRows& rows, const float* x, const float* mean, const float* scale, const float* beta,
               float* y) {
  const std::int64_t channels = rows.channels;
  parallel_ranges(rows.rows, row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
    normalize_range(x + begin * channels, mean, scale, beta, y + begin * channels, end - begin, channels);
  });
}

float* workspace_floats(std::int64_t count) {
  return reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(count) * sizeof(float)));
}

float gamma_of(const Kernels::BatchNorm& norm, std::int64_t channel) {
  return norm.gamma.defined() ? norm.gamma.as<float>()[channel] : 1.0F;
}

// Sums over the real rows: of dy, and of dy times the distance from the mean.
struct GradientSums {
  double dy[kStrip] = {};
  double dy_distance[kStrip] = {};
};

HEADRACE_INLINE void add_gradient_block(const float* x, const float* dy, const float* mean, GradientSums& sums,
                                        std::int64_t rows, std::int64_t channels, std::int64_t width) {
  float sum[kStrip] = {};
  float distance_sum[kStrip] = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) {
      const float gradient = dy[row * channels + c];
      sum[c] += gradient;
      distance_sum[c] += gradient * (x[row * channels + c] - mean[c]);
    }
  }
  for (std::int64_t c = 0; c < width; ++c) {
    sums.dy[c] += static_cast<double>(sum[c]);
    sums.dy_distance[c] += static_cast<double>(distance_sum[c]);
  }
}

HEADRACE_SIMD void strip_gradient_sums(const float* x, const float* dy, const float* mean, GradientSums& sums,
                                       std::int64_t rows, std::int64_t channels, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; row += kSumBlock) {
    const std::int64_t at = row * channels;
    const std::int64_t count = rows - row < kSumBlock ? rows - row : kSumBlock;
    if (width == kStrip) {
      add_gradient_block(x + at, dy + at, mean, sums, count, channels, kStrip);
    } else {
      add_gradient_block(x + at, dy + at, mean, sums, count, channels, width);
    }
  }
}

// dx = scale * (dy - offset - (x - mean) * slope), one coefficient a channel.
struct Coefficients {
  const float* mean;
  float* scale;
  float* offset;
  float* slope;
};

HEADRACE_SIMD void input_gradient_range(const float* x, const float* dy, const Coefficients& by, float* dx,
                                        std::int64_t rows, std::int64_t channels) {
  const float* mean = by.mean;
  const float* scale = by.scale;
  const float* offset = by.offset;
  const float* slope = by.slope;
  for (std::int64_t row = 0; row < rows; ++row, x += channels, dy += channels, dx += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      dx[c] = scale[c] * (dy[c] - offset[c] - (x[c] - mean[c]) * slope[c]);
    }
  }
}

void strip_gradients(const NormRows& rows, const float* x, const float* dy, const Kernels::BatchNorm& norm,
                     const Coefficients& into, float* dgamma, float* dbeta, std::int64_t channel,
                     std::int64_t width) {
  GradientSums sums;
  strip_gradient_sums(x + channel, dy + channel, into.mean + channel, sums, rows.real, rows.channels, width);
  const double share = rows.real > 0 ? 1 / static_cast<double>(rows.real) : 0;
  for (std::int64_t c = 0; c < width; ++c) {
    const std::int64_t at = channel + c;
    const float inverse = norm.saved_inv_std.as<float>()[at];
    const double inv_std = static_cast<double>(inverse);
    if (dgamma != nullptr) dgamma[at] = static_cast<float>(sums.dy_distance[c] * inv_std);
    if (dbeta != nullptr) dbeta[at] = static_cast<float>(sums.dy[c]);
    into.scale[at] = gamma_of(norm, at) * inverse;
    into.offset[at] = static_cast<float>(sums.dy[c] * share);
    into.slope[at] = static_cast<float>(sums.dy_distance[c] * share * inv_std * inv_std);
  }
}

// One strip of channels a call.
template <typename Function>
void parallel_strips(const NormRows& rows, const Function& function) {
  const std::int64_t strips = (rows.channels + kStrip - 1) / kStrip;
  parallel_ranges(strips, row_grain(rows.real * kStrip), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t channel = first * kStrip; channel < std::min(rows.channels, last * kStrip);
         channel += kStrip) {
      function(channel, std::min(kStrip, rows.channels - channel));
    }
  });
}

// Without real rows there is nothing to learn from: the running statistics stand in.
void borrow_running_statistics(const NormRows& rows, const Kernels::BatchNorm& norm) {
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    norm.saved_mean.as<float>()[c] = norm.running_mean.as<float>()[c];
    norm.saved_inv_std.as<float>()[c] = 1 / std::sqrt(norm.running_var.as<float>()[c] + norm.epsilon);
  }
}

}  // namespace

void batch_norm_train(const NormRows& rows, const float* x, const Kernels::BatchNorm& norm, float* y) {
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
  normalize(rows, x, norm.saved_mean.as<float>(), scale, norm.beta.as<float>(), y);
}

void batch_norm_infer(const NormRows& rows, const float* x, const Kernels::BatchNorm& norm, float* y) {
  float* scale = workspace_floats(rows.channels);
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    scale[c] = gamma_of(norm, c) / std::sqrt(norm.running_var.as<float>()[c] + norm.epsilon);
  }
  normalize(rows, x, norm.running_mean.as<float>(), scale, norm.beta.as<float>(), y);
}

void batch_norm_backward(const NormRows& rows, const float* x, const float* dy, const Kernels::BatchNorm& norm,
                         float* dgamma, float* dbeta, float* dx) {
  const std::int64_t channels = rows.channels;
  float* scratch = workspace_floats(3 * channels);
  const Coefficients by{.mean = norm.saved_mean.as<float>(),
                        .scale = scratch,
                        .offset = scratch + channels,
                        .slope = scratch + 2 * channels};
  parallel_strips(rows, [&](std::int64_t channel, std::int64_t width) {
    strip_gradients(rows, x, dy, norm, by, dgamma, dbeta, channel, width);
  });
  parallel_ranges(rows.real, row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    input_gradient_range(x + at, dy + at, by, dx + at, end - begin, channels);
  });
  std::memset(dx + rows.real * channels, 0,
              static_cast<std::size_t>((rows.rows - rows.real) * channels) * sizeof(float));
}

}  // namespace headrace::cpu
