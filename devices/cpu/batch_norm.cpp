#include "headrace/devices/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/devices/cpu/column_sums.h"
#include "headrace/devices/cpu/element.h"
#include "headrace/devices/cpu/parallel.h"
#include "headrace/devices/cpu/simd.h"
#include "headrace/devices/cpu/vector_math.h"
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
template <typename T>
HEADRACE_INLINE void add_moments(const T* x, Moments& moments, std::int64_t before, std::int64_t rows,
                                 std::int64_t channels, std::int64_t width) {
  float mean[kStrip] = {};
  float deviation[kStrip] = {};
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
    if (width == kStrip) {
      add_moments(x + row * channels, moments, row, count, channels, kStrip);
    } else {
      add_moments(x + row * channels, moments, row, count, channels, width);
    }
  }
}

HEADRACE_SIMD void strip_moments(const float* x, Moments& moments, std::int64_t rows, std::int64_t channels,
                                 std::int64_t width) {
  add_blocks_of(x, moments, rows, channels, width);
}
HEADRACE_SIMD void strip_moments(const BFloat16* x, Moments& moments, std::int64_t rows, std::int64_t channels,
                                 std::int64_t width) {
  add_blocks_of(x, moments, rows, channels, width);
}

// The batch's mean and 1 / deviation of `width` channels from `channel` on, and what they do to the running ones.
template <typename T>
void strip_statistics(const NormRows& rows, const T* x, const Kernels::BatchNorm& norm, std::int64_t channel,
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

// What is normalised is (x - mean) * scale + beta, one coefficient a channel.
struct Affine {
  const float* mean;
  const float* scale;
  const float* beta;
};

template <Activation kActivation, typename T>
HEADRACE_INLINE void normalize_rows(const T* x, const Affine& by, T* y, std::int64_t rows, std::int64_t channels) {
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
HEADRACE_INLINE void normalize_as(Activation activation, const T* x, const Affine& by, T* y, std::int64_t rows,
                                  std::int64_t channels) {
  switch (activation) {
    case Activation::kNone: return normalize_rows<Activation::kNone>(x, by, y, rows, channels);
    case Activation::kRelu: return normalize_rows<Activation::kRelu>(x, by, y, rows, channels);
    case Activation::kGelu: return normalize_rows<Activation::kGelu>(x, by, y, rows, channels);
    case Activation::kSilu: return normalize_rows<Activation::kSilu>(x, by, y, rows, channels);
  }
}

HEADRACE_SIMD void normalize_range(Activation activation, const float* x, const Affine& by, float* y,
                                   std::int64_t rows, std::int64_t channels) {
  normalize_as(activation, x, by, y, rows, channels);
}
HEADRACE_SIMD void normalize_range(Activation activation, const BFloat16* x, const Affine& by, BFloat16* y,
                                   std::int64_t rows, std::int64_t channels) {
  normalize_as(activation, x, by, y, rows, channels);
}

template <typename T>
void normalize(const NormRows& rows, Activation activation, const T* x, const Affine& by, T* y) {
  const std::int64_t channels = rows.channels;
  parallel_ranges(rows.rows, row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
    normalize_range(activation, x + begin * channels, by, y + begin * channels, end - begin, channels);
  });
}

float* workspace_floats(std::int64_t count) {
  return reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(count) * sizeof(float)));
}

float gamma_of(const Kernels::BatchNorm& norm, std::int64_t channel) {
  return norm.gamma.defined() ? norm.gamma.as<float>()[channel] : 1.0F;
}

// Some rows of up to kStrip channels: of x, and of the gradient of the activation's result. That of its argument,
// dz, is computed wherever it is needed: to store it would take longer.
template <typename T>
struct GradientStrip {
  const T* x;
  const T* dy;
  Affine by;
};

// Sums over one block of rows: of dz, and, `channels` further on, of dz times the distance from the mean.
template <Activation kActivation, typename T>
HEADRACE_INLINE void sum_block(const GradientStrip<T>& strip, float* sums, std::int64_t rows,
                               std::int64_t channels, std::int64_t width) {
  const T* x = strip.x;
  const T* dy = strip.dy;
  float sum[kStrip] = {};
  float distance_sum[kStrip] = {};
  for (std::int64_t row = 0; row < rows; ++row, x += channels, dy += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < width; ++c) {
      const float distance = value(x[c]) - strip.by.mean[c];
      const float gradient =
          activation_gradient<kActivation>(distance * strip.by.scale[c] + strip.by.beta[c], value(dy[c]));
      sum[c] += gradient;
      distance_sum[c] += gradient * distance;
    }
  }
  for (std::int64_t c = 0; c < width; ++c) sums[c] = sum[c];
  for (std::int64_t c = 0; c < width; ++c) sums[channels + c] = distance_sum[c];
}

template <Activation kActivation, typename T>
HEADRACE_INLINE void sum_gradient_strip(const GradientStrip<T>& strip, float* sums, std::int64_t rows,
                                        std::int64_t channels, std::int64_t width) {
  if (width == kStrip) {
    sum_block<kActivation>(strip, sums, rows, channels, kStrip);
  } else {
    sum_block<kActivation>(strip, sums, rows, channels, width);
  }
}

template <typename T>
HEADRACE_INLINE void sum_strip_as(Activation activation, const GradientStrip<T>& strip, float* sums,
                                  std::int64_t rows, std::int64_t channels, std::int64_t width) {
  switch (activation) {
    case Activation::kNone: return sum_gradient_strip<Activation::kNone>(strip, sums, rows, channels, width);
    case Activation::kRelu: return sum_gradient_strip<Activation::kRelu>(strip, sums, rows, channels, width);
    case Activation::kGelu: return sum_gradient_strip<Activation::kGelu>(strip, sums, rows, channels, width);
    case Activation::kSilu: return sum_gradient_strip<Activation::kSilu>(strip, sums, rows, channels, width);
  }
}

HEADRACE_SIMD void strip_gradient_sums(Activation activation, const GradientStrip<float>& strip, float* sums,
                                       std::int64_t rows, std::int64_t channels, std::int64_t width) {
  sum_strip_as(activation, strip, sums, rows, channels, width);
}
HEADRACE_SIMD void strip_gradient_sums(Activation activation, const GradientStrip<BFloat16>& strip, float* sums,
                                       std::int64_t rows, std::int64_t channels, std::int64_t width) {
  sum_strip_as(activation, strip, sums, rows, channels, width);
}

HEADRACE_SIMD void add_blocks(const float* blocks, double* totals, std::int64_t count, std::int64_t width) {
  for (std::int64_t c = 0; c < width; ++c) totals[c] = 0;
  for (std::int64_t block = 0; block < count; ++block, blocks += width) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < width; ++c) totals[c] += static_cast<double>(blocks[c]);
  }
}

// dx = scale * (dz - offset - (x - mean) * slope), one coefficient a channel; beta is for dz.
struct Coefficients {
  const float* mean;
  const float* beta;
  float* scale;
  float* offset;
  float* slope;
};

template <Activation kActivation, typename T>
HEADRACE_INLINE void input_gradient_rows(const T* x, const T* dy, const Coefficients& by, T* dx, std::int64_t rows,
                                         std::int64_t channels) {
  const float* mean = by.mean;
  const float* beta = by.beta;
  const float* scale = by.scale;
  const float* offset = by.offset;
  const float* slope = by.slope;
  for (std::int64_t row = 0; row < rows; ++row, x += channels, dy += channels, dx += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const float distance = value(x[c]) - mean[c];
      const float dz = activation_gradient<kActivation>(distance * scale[c] + beta[c], value(dy[c]));
      dx[c] = element<T>(scale[c] * (dz - offset[c] - distance * slope[c]));
    }
  }
}

template <typename T>
HEADRACE_INLINE void input_gradient_as(Activation activation, const T* x, const T* dy, const Coefficients& by,
                                       T* dx, std::int64_t rows, std::int64_t channels) {
  switch (activation) {
    case Activation::kNone: return input_gradient_rows<Activation::kNone>(x, dy, by, dx, rows, channels);
    case Activation::kRelu: return input_gradient_rows<Activation::kRelu>(x, dy, by, dx, rows, channels);
    case Activation::kGelu: return input_gradient_rows<Activation::kGelu>(x, dy, by, dx, rows, channels);
    case Activation::kSilu: return input_gradient_rows<Activation::kSilu>(x, dy, by, dx, rows, channels);
  }
}

HEADRACE_SIMD void input_gradient_range(Activation activation, const float* x, const float* dy,
                                        const Coefficients& by, float* dx, std::int64_t rows,
                                        std::int64_t channels) {
  input_gradient_as(activation, x, dy, by, dx, rows, channels);
}
HEADRACE_SIMD void input_gradient_range(Activation activation, const BFloat16* x, const BFloat16* dy,
                                        const Coefficients& by, BFloat16* dx, std::int64_t rows,
                                        std::int64_t channels) {
  input_gradient_as(activation, x, dy, by, dx, rows, channels);
}

// The tensors of batch_norm_backward().
template <typename T>
struct BackwardCall {
  const T* x;
  const T* dy;
  float* dgamma;
  float* dbeta;
  T* dx;
};

// Block by block, in f32: the sums of dz. `blocks` is of 2 * channels for each block of rows.
template <typename T>
void sum_gradients(const NormRows& rows, const BackwardCall<T>& call, const Kernels::BatchNorm& norm,
                   const Coefficients& by, float* blocks) {
  const std::int64_t channels = rows.channels;
  const std::int64_t count = (rows.real + kSumBlock - 1) / kSumBlock;
  parallel_ranges(count, row_grain(kSumBlock * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t height = std::min(kSumBlock, rows.real - block * kSumBlock);
      for (std::int64_t channel = 0; channel < channels; channel += kStrip) {
        const std::int64_t at = block * kSumBlock * channels + channel;
        const GradientStrip<T> strip{.x = call.x + at,
                                     .dy = call.dy + at,
                                     .by = {by.mean + channel, by.scale + channel, by.beta + channel}};
        strip_gradient_sums(norm.activation, strip, blocks + block * 2 * channels + channel, height, channels,
                            std::min(kStrip, channels - channel));
      }
    }
  });
}

// From the sums over all real rows: of dz, then of dz times the distance from the mean.
template <typename T>
void apply_sums(const NormRows& rows, const BackwardCall<T>& call, const Kernels::BatchNorm& norm,
                const double* totals, const Coefficients& into) {
  const double share = rows.real > 0 ? 1 / static_cast<double>(rows.real) : 0;
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    const double sum = totals[c], distance_sum = totals[rows.channels + c];
    const auto inv_std = static_cast<double>(norm.saved_inv_std.as<float>()[c]);
    if (call.dgamma != nullptr) call.dgamma[c] = static_cast<float>(distance_sum * inv_std);
    if (call.dbeta != nullptr) call.dbeta[c] = static_cast<float>(sum);
    into.offset[c] = static_cast<float>(sum * share);
    into.slope[c] = static_cast<float>(distance_sum * share * inv_std * inv_std);
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

template <typename T>
void batch_norm_train(const NormRows& rows, const T* x, const Kernels::BatchNorm& norm, T* y) {
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
void batch_norm_infer(const NormRows& rows, const T* x, const Kernels::BatchNorm& norm, T* y) {
  float* scale = workspace_floats(rows.channels);
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    scale[c] = gamma_of(norm, c) / std::sqrt(norm.running_var.as<float>()[c] + norm.epsilon);
  }
  normalize(rows, norm.activation, x, {norm.running_mean.as<float>(), scale, norm.beta.as<float>()}, y);
}

template <typename T>
void batch_norm_backward(const NormRows& rows, const T* x, const T* dy, const Kernels::BatchNorm& norm,
                         float* dgamma, float* dbeta, T* dx) {
  const std::int64_t channels = rows.channels;
  const std::int64_t blocks = (rows.real + kSumBlock - 1) / kSumBlock;
  float* scratch = workspace_floats((4 + 3 + 2 * blocks) * channels);
  auto* totals = reinterpret_cast<double*>(scratch);  // 2 * channels
  float* vectors = scratch + 4 * channels;
  float* block_sums = vectors + 3 * channels;
  const Coefficients by{.mean = norm.saved_mean.as<float>(),
                        .beta = norm.beta.as<float>(),
                        .scale = vectors,
                        .offset = vectors + channels,
                        .slope = vectors + 2 * channels};
  for (std::int64_t c = 0; c < channels; ++c) by.scale[c] = gamma_of(norm, c) * norm.saved_inv_std.as<float>()[c];
  const BackwardCall<T> call{.x = x, .dy = dy, .dgamma = dgamma, .dbeta = dbeta, .dx = dx};
  sum_gradients(rows, call, norm, by, block_sums);
  add_blocks(block_sums, totals, blocks, 2 * channels);
  apply_sums(rows, call, norm, totals, by);
  parallel_ranges(rows.real, row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    input_gradient_range(norm.activation, x + at, dy + at, by, dx + at, end - begin, channels);
  });
  std::memset(dx + rows.real * channels, 0,
              static_cast<std::size_t>((rows.rows - rows.real) * channels) * sizeof(T));
}

#define HEADRACE_BATCH_NORM(T)                                                                              \
  template void batch_norm_train(const NormRows&, const T*, const Kernels::BatchNorm&, T*);                 \
  template void batch_norm_infer(const NormRows&, const T*, const Kernels::BatchNorm&, T*);                 \
  template void batch_norm_backward(const NormRows&, const T*, const T*, const Kernels::BatchNorm&, float*, \
                                    float*, T*);
HEADRACE_BATCH_NORM(float)
HEADRACE_BATCH_NORM(BFloat16)
#undef HEADRACE_BATCH_NORM

}  // namespace headrace::cpu
