#include "headrace/devices/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/devices/cpu/column_sums.h"
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

// What is normalised is (x - mean) * scale + beta, one coefficient a channel.
struct Affine {
  const float* mean;
  const float* scale;
  const float* beta;
};

template <Activation kActivation>
HEADRACE_INLINE void normalize_rows(const float* x, const Affine& by, float* y, std::int64_t rows,
                                    std::int64_t channels) {
  const float* mean = by.mean;
  const float* scale = by.scale;
  const float* beta = by.beta;
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      y[c] = activated<kActivation>((x[c] - mean[c]) * scale[c] + beta[c]);
    }
  }
}

HEADRACE_SIMD void normalize_range(Activation activation, const float* x, const Affine& by, float* y,
                                   std::int64_t rows, std::int64_t channels) {
  switch (activation) {
    case Activation::kNone: return normalize_rows<Activation::kNone>(x, by, y, rows, channels);
    case Activation::kRelu: return normalize_rows<Activation::kRelu>(x, by, y, rows, channels);
    case Activation::kGelu: return normalize_rows<Activation::kGelu>(x, by, y, rows, channels);
    case Activation::kSilu: return normalize_rows<Activation::kSilu>(x, by, y, rows, channels);
  }
}

void normalize(const NormRows& rows, Activation activation, const float* x, const Affine& by, float* y) {
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

// Some rows of up to kStrip channels: of x, and of the gradient of the activation's result; `dz` is where that of
// its argument goes, perhaps dy.
struct GradientStrip {
  const float* x;
  const float* dy;
  float* dz;
  Affine by;
};

// Sums over one block of rows: of dz, and, `channels` further on, of dz times the distance from the mean.
template <Activation kActivation>
HEADRACE_INLINE void sum_block(const GradientStrip& strip, float* sums, std::int64_t rows, std::int64_t channels,
                               std::int64_t width) {
  const float* x = strip.x;
  const float* dy = strip.dy;
  float* dz = strip.dz;
  float sum[kStrip] = {};
  float distance_sum[kStrip] = {};
  for (std::int64_t row = 0; row < rows; ++row, x += channels, dy += channels, dz += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < width; ++c) {
      const float distance = x[c] - strip.by.mean[c];
      const float gradient =
          activation_gradient<kActivation>(distance * strip.by.scale[c] + strip.by.beta[c], dy[c]);
      if constexpr (kActivation != Activation::kNone) dz[c] = gradient;
      sum[c] += gradient;
      distance_sum[c] += gradient * distance;
    }
  }
  for (std::int64_t c = 0; c < width; ++c) sums[c] = sum[c];
  for (std::int64_t c = 0; c < width; ++c) sums[channels + c] = distance_sum[c];
}

template <Activation kActivation>
HEADRACE_INLINE void sum_strip(const GradientStrip& strip, float* sums, std::int64_t rows, std::int64_t channels,
                               std::int64_t width) {
  if (width == kStrip) {
    sum_block<kActivation>(strip, sums, rows, channels, kStrip);
  } else {
    sum_block<kActivation>(strip, sums, rows, channels, width);
  }
}

HEADRACE_SIMD void strip_gradient_sums(Activation activation, const GradientStrip& strip, float* sums,
                                       std::int64_t rows, std::int64_t channels, std::int64_t width) {
  switch (activation) {
    case Activation::kNone: return sum_strip<Activation::kNone>(strip, sums, rows, channels, width);
    case Activation::kRelu: return sum_strip<Activation::kRelu>(strip, sums, rows, channels, width);
    case Activation::kGelu: return sum_strip<Activation::kGelu>(strip, sums, rows, channels, width);
    case Activation::kSilu: return sum_strip<Activation::kSilu>(strip, sums, rows, channels, width);
  }
}

HEADRACE_SIMD void add_blocks(const float* blocks, double* totals, std::int64_t count, std::int64_t width) {
  for (std::int64_t c = 0; c < width; ++c) totals[c] = 0;
  for (std::int64_t block = 0; block < count; ++block, blocks += width) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < width; ++c) totals[c] += static_cast<double>(blocks[c]);
  }
}

// dx = scale * (dz - offset - (x - mean) * slope), one coefficient a channel.
struct Coefficients {
  const float* mean;
  float* scale;
  float* offset;
  float* slope;
};

HEADRACE_SIMD void input_gradient_range(const float* x, const float* dz, const Coefficients& by, float* dx,
                                        std::int64_t rows, std::int64_t channels) {
  const float* mean = by.mean;
  const float* scale = by.scale;
  const float* offset = by.offset;
  const float* slope = by.slope;
  for (std::int64_t row = 0; row < rows; ++row, x += channels, dz += channels, dx += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      dx[c] = scale[c] * (dz[c] - offset[c] - (x[c] - mean[c]) * slope[c]);
    }
  }
}

// The tensors of batch_norm_backward().
struct BackwardCall {
  const float* x;
  const float* dy;
  float* dgamma;
  float* dbeta;
  float* dx;
};

// Block by block, in f32: dz, and its sums. `blocks` is of 2 * channels for each block of rows.
void sum_gradients(const NormRows& rows, const BackwardCall& call, const Kernels::BatchNorm& norm,
                   const Coefficients& by, float* blocks) {
  const std::int64_t channels = rows.channels;
  const float* beta = norm.beta.as<float>();
  const std::int64_t count = (rows.real + kSumBlock - 1) / kSumBlock;
  parallel_ranges(count, row_grain(kSumBlock * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t height = std::min(kSumBlock, rows.real - block * kSumBlock);
      for (std::int64_t channel = 0; channel < channels; channel += kStrip) {
        const std::int64_t at = block * kSumBlock * channels + channel;
        const GradientStrip strip{.x = call.x + at,
                                  .dy = call.dy + at,
                                  .dz = call.dx + at,
                                  .by = {by.mean + channel, by.scale + channel, beta + channel}};
        strip_gradient_sums(norm.activation, strip, blocks + block * 2 * channels + channel, height, channels,
                            std::min(kStrip, channels - channel));
      }
    }
  });
}

// From the sums over all real rows: of dz, then of dz times the distance from the mean.
void apply_sums(const NormRows& rows, const BackwardCall& call, const Kernels::BatchNorm& norm,
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
  normalize(rows, norm.activation, x, {norm.saved_mean.as<float>(), scale, norm.beta.as<float>()}, y);
}

void batch_norm_infer(const NormRows& rows, const float* x, const Kernels::BatchNorm& norm, float* y) {
  float* scale = workspace_floats(rows.channels);
  for (std::int64_t c = 0; c < rows.channels; ++c) {
    scale[c] = gamma_of(norm, c) / std::sqrt(norm.running_var.as<float>()[c] + norm.epsilon);
  }
  normalize(rows, norm.activation, x, {norm.running_mean.as<float>(), scale, norm.beta.as<float>()}, y);
}

void batch_norm_backward(const NormRows& rows, const float* x, const float* dy, const Kernels::BatchNorm& norm,
                         float* dgamma, float* dbeta, float* dx) {
  const std::int64_t channels = rows.channels;
  const std::int64_t blocks = (rows.real + kSumBlock - 1) / kSumBlock;
  float* scratch = workspace_floats((4 + 3 + 2 * blocks) * channels);
  auto* totals = reinterpret_cast<double*>(scratch);  // 2 * channels
  float* vectors = scratch + 4 * channels;
  float* block_sums = vectors + 3 * channels;
  const Coefficients by{.mean = norm.saved_mean.as<float>(),
                        .scale = vectors,
                        .offset = vectors + channels,
                        .slope = vectors + 2 * channels};
  for (std::int64_t c = 0; c < channels; ++c) by.scale[c] = gamma_of(norm, c) * norm.saved_inv_std.as<float>()[c];
  const BackwardCall call{.x = x, .dy = dy, .dgamma = dgamma, .dbeta = dbeta, .dx = dx};
  sum_gradients(rows, call, norm, by, block_sums);
  add_blocks(block_sums, totals, blocks, 2 * channels);
  apply_sums(rows, call, norm, totals, by);
  const float* dz = norm.activation == Activation::kNone ? dy : dx;
  parallel_ranges(rows.real, row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    input_gradient_range(x + at, dz + at, by, dx + at, end - begin, channels);
  });
  std::memset(dx + rows.real * channels, 0,
              static_cast<std::size_t>((rows.rows - rows.real) * channels) * sizeof(float));
}

}  // namespace headrace::cpu
