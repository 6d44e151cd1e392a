// The gradients of batch normalisation.
#include <algorithm>
#include <cstring>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/batch_norm.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/vector_math.h"

namespace headrace::cpu {
namespace {

// Some rows of up to kNormStrip channels of x and of the gradient of the activation's result. The gradient of its
// argument, dz, is recomputed wherever it is needed: storing it would take longer.
template <typename T>
struct GradientStrip {
  const T* x;
  const T* dy;
  NormAffine by;
};

// Sums over one block of rows: of dz, and, `channels` further on, of dz times the distance from the mean.
template <Activation kActivation, typename T>
HEADRACE_INLINE void sum_block(const GradientStrip<T>& strip, float* sums, std::int64_t rows,
                               std::int64_t channels, std::int64_t width) {
  const T* x = strip.x;
  const T* dy = strip.dy;
  float sum[kNormStrip] = {};
  float distance_sum[kNormStrip] = {};
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
  if (width == kNormStrip) {
    sum_block<kActivation>(strip, sums, rows, channels, kNormStrip);
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
    default: break;  // is_fused() is checked
  }
}

HEADRACE_SIMD_MATH void strip_gradient_sums(Activation activation, const GradientStrip<float>& strip, float* sums,
                                            std::int64_t rows, std::int64_t channels, std::int64_t width) {
  sum_strip_as(activation, strip, sums, rows, channels, width);
}
HEADRACE_SIMD_MATH void strip_gradient_sums(Activation activation, const GradientStrip<BFloat16>& strip,
                                            float* sums, std::int64_t rows, std::int64_t channels,
                                            std::int64_t width) {
  sum_strip_as(activation, strip, sums, rows, channels, width);
}

HEADRACE_SIMD_MATH void add_blocks(const float* blocks, double* totals, std::int64_t count, std::int64_t width) {
  for (std::int64_t c = 0; c < width; ++c) totals[c] = 0;
  for (std::int64_t block = 0; block < count; ++block, blocks += width) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < width; ++c) totals[c] += static_cast<double>(blocks[c]);
  }
}

// dx = scale * (dz - offset - (x - mean) * slope), one coefficient per channel; beta is for dz.
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
    default: break;  // is_fused() is checked
  }
}

HEADRACE_SIMD_MATH void input_gradient_range(Activation activation, const float* x, const float* dy,
                                             const Coefficients& by, float* dx, std::int64_t rows,
                                             std::int64_t channels) {
  input_gradient_as(activation, x, dy, by, dx, rows, channels);
}
HEADRACE_SIMD_MATH void input_gradient_range(Activation activation, const BFloat16* x, const BFloat16* dy,
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

// Computes the sums of dz block by block, in f32. `blocks` holds 2 * channels values per block of rows.
template <typename T>
void sum_gradients(const NormRows& rows, const BackwardCall<T>& call, const kernel::BatchNorm& norm,
                   const Coefficients& by, float* blocks) {
  const std::int64_t channels = rows.channels;
  const std::int64_t count = (rows.real + kSumBlock - 1) / kSumBlock;
  parallel_ranges(count, row_grain(kSumBlock * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t height = std::min(kSumBlock, rows.real - block * kSumBlock);
      for (std::int64_t channel = 0; channel < channels; channel += kNormStrip) {
        const std::int64_t at = block * kSumBlock * channels + channel;
        const GradientStrip<T> strip{.x = call.x + at,
                                     .dy = call.dy + at,
                                     .by = {by.mean + channel, by.scale + channel, by.beta + channel}};
        strip_gradient_sums(norm.activation, strip, blocks + block * 2 * channels + channel, height, channels,
                            std::min(kNormStrip, channels - channel));
      }
    }
  });
}

// Takes the sums over all real rows: of dz, then of dz times the distance from the mean.
template <typename T>
void apply_sums(const NormRows& rows, const BackwardCall<T>& call, const kernel::BatchNorm& norm,
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

template <typename T>
void batch_norm_backward(const NormRows& rows, const T* x, const T* dy, const kernel::BatchNorm& norm,
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

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::BatchNormBackward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::batch_norm_backward(norm_rows(of.x, of.scalars->rows), of.x.as<T>(), of.dy.as<T>(), of.norm,
                               f32(of.dgamma), f32(of.dbeta), of.dx.as<T>());
    });
  });
}

}  // namespace headrace::cpu
