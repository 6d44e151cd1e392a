// Depthwise convolutions, and the gradient of a convolution's bias if the activation's input was not stored: the
// same bits with any number of threads.
#include <algorithm>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/convolutions.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

// The operands of a bias's gradient. T is float or BFloat16, the type of activations; W that of weights.
template <typename T, typename W>
struct ConvBiasOperands {
  const T* x;
  const W* weights;
  const float* bias;  // null: 0
  const T* dy;
};

constexpr std::int64_t kChannelStrip = 64;  // channels that are summed at once

std::int64_t taps_of(const ConvShape& shape) { return shape.kernel_height * shape.kernel_width; }

// Returns the weights as (KH, KW, outputs), in memory of the calling thread.
const float* with_outputs_last(const ConvShape& shape, const float* weights) {
  const std::int64_t taps = taps_of(shape);
  auto* turned = reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(taps * shape.outputs) * sizeof(float)));
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t o = 0; o < shape.outputs; ++o) turned[tap * shape.outputs + o] = weights[o * taps + tap];
  }
  return turned;
}

// A line of images: image number and row, and that row's first pixel.
struct ImageLine {
  ImageLine(std::int64_t line, std::int64_t height, std::int64_t width)
      : image(line / height), row(line % height), first(line * width) {}

  std::int64_t image, row, first;
};

// Returns the pixel of x that a tap of an output pixel reads; -1 in the padding.
std::int64_t input_pixel(const ConvShape& shape, const ImageLine& out, std::int64_t column, std::int64_t tap) {
  const ConvOptions& o = shape.options;
  const std::int64_t y = out.row * o.stride.height - o.pad_top + tap / shape.kernel_width * o.dilation.height;
  const std::int64_t x = column * o.stride.width - o.pad_left + tap % shape.kernel_width * o.dilation.width;
  if (y < 0 || y >= shape.height || x < 0 || x >= shape.width) return -1;
  return (out.image * shape.height + y) * shape.width + x;
}

// Returns the output pixel of which a tap reads this pixel of x; -1 if there is none.
std::int64_t output_pixel(const ConvShape& shape, const ImageLine& in, std::int64_t column, std::int64_t tap) {
  const ConvOptions& o = shape.options;
  const std::int64_t down = in.row + o.pad_top - tap / shape.kernel_width * o.dilation.height;
  const std::int64_t right = column + o.pad_left - tap % shape.kernel_width * o.dilation.width;
  if (down < 0 || right < 0 || down % o.stride.height != 0 || right % o.stride.width != 0) return -1;
  const std::int64_t y = down / o.stride.height, x = right / o.stride.width;
  if (y >= shape.out_height || x >= shape.out_width) return -1;
  return (in.image * shape.out_height + y) * shape.out_width + x;
}

// sums[k] += a[k] b[k].
template <typename A, typename B>
HEADRACE_INLINE void add_each_product(const A* a, const B* b, float* sums, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t k = 0; k < count; ++k) sums[k] += value(a[k]) * value(b[k]);
}
HEADRACE_SIMD_MATH void add_products(const float* a, const float* b, float* sums, std::int64_t count) {
  add_each_product(a, b, sums, count);
}
HEADRACE_SIMD_MATH void add_products(const BFloat16* a, const float* b, float* sums, std::int64_t count) {
  add_each_product(a, b, sums, count);
}
HEADRACE_SIMD_MATH void add_products(const BFloat16* a, const BFloat16* b, float* sums, std::int64_t count) {
  add_each_product(a, b, sums, count);
}

// sums[k] += x[(first + k) / multiplier] b[k], for outputs [first, first + count).
template <typename T, typename B>
void add_spread_products(const T* x, std::int64_t multiplier, std::int64_t first, const B* b, float* sums,
                         std::int64_t count) {
  if (multiplier == 1) return add_products(x + first, b, sums, count);
  for (std::int64_t k = 0; k < count; ++k) sums[k] += value(x[(first + k) / multiplier]) * value(b[k]);
}

// One strip of a pixel's outputs.
template <typename T>
void output_strip(const ConvShape& shape, const ImageLine& line, std::int64_t column, std::int64_t first,
                  const T* x, const float* turned, float* sums) {
  const std::int64_t count = std::min(kChannelStrip, shape.outputs - first),
                     multiplier = shape.outputs / shape.channels;
  for (std::int64_t tap = 0; tap < taps_of(shape); ++tap) {
    const std::int64_t from = input_pixel(shape, line, column, tap);
    if (from < 0) continue;
    add_spread_products(x + from * shape.channels, multiplier, first, turned + tap * shape.outputs + first, sums,
                        count);
  }
}

// One strip of the gradient of a pixel of x.
template <typename T>
void input_strip(const ConvShape& shape, const ImageLine& line, std::int64_t column, std::int64_t first,
                 const T* dy, const float* turned, float* sums) {
  const std::int64_t count = std::min(kChannelStrip, shape.channels - first),
                     multiplier = shape.outputs / shape.channels;
  for (std::int64_t tap = 0; tap < taps_of(shape); ++tap) {
    const std::int64_t from = output_pixel(shape, line, column, tap);
    if (from < 0) continue;
    const T* slopes = dy + from * shape.outputs + first * multiplier;
    const float* w = turned + tap * shape.outputs + first * multiplier;
    if (multiplier == 1) {
      add_products(slopes, w, sums, count);
      continue;
    }
    for (std::int64_t i = 0; i < count * multiplier; ++i) sums[i / multiplier] += value(slopes[i]) * w[i];
  }
}

// The gradients of one tap of the outputs [first, first + kChannelStrip).
template <typename T>
void tap_gradient(const ConvShape& shape, std::int64_t tap, std::int64_t first, const T* x, const T* dy,
                  float* dweights) {
  const std::int64_t count = std::min(kChannelStrip, shape.outputs - first),
                     multiplier = shape.outputs / shape.channels;
  double totals[kChannelStrip] = {};
  for (std::int64_t number = 0; number < shape.images * shape.out_height; ++number) {
    const ImageLine line(number, shape.out_height, shape.out_width);
    for (std::int64_t begin = 0; begin < shape.out_width; begin += kSumBlock) {
      float sums[kChannelStrip] = {};
      for (std::int64_t column = begin; column < std::min(begin + kSumBlock, shape.out_width); ++column) {
        const std::int64_t from = input_pixel(shape, line, column, tap);
        if (from < 0) continue;
        add_spread_products(x + from * shape.channels, multiplier, first,
                            dy + (line.first + column) * shape.outputs + first, sums, count);
      }
      for (std::int64_t k = 0; k < count; ++k) totals[k] += static_cast<double>(sums[k]);
    }
  }
  for (std::int64_t k = 0; k < count; ++k) {
    dweights[(first + k) * taps_of(shape) + tap] = static_cast<float>(totals[k]);
  }
}

template <typename T>
void depthwise_forward(const ConvShape& shape, const T* x, const float* weights, const float* bias,
                       Activation activation, T* y) {
  const float* turned = with_outputs_last(shape, weights);
  const std::int64_t grain = row_grain(taps_of(shape) * shape.out_width * shape.outputs);
  parallel_ranges(shape.images * shape.out_height, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t number = begin; number < end; ++number) {
      const ImageLine line(number, shape.out_height, shape.out_width);
      for (std::int64_t column = 0; column < shape.out_width; ++column) {
        for (std::int64_t first = 0; first < shape.outputs; first += kChannelStrip) {
          const std::int64_t count = std::min(kChannelStrip, shape.outputs - first);
          float sums[kChannelStrip] = {};
          if (bias != nullptr) std::copy_n(bias + first, count, sums);
          output_strip(shape, line, column, first, x, turned, sums);
          activate(activation, sums, y + (line.first + column) * shape.outputs + first, count);
        }
      }
    }
  });
}

template <typename T>
void depthwise_backward_data(const ConvShape& shape, const T* dy, const float* weights, T* dx) {
  const float* turned = with_outputs_last(shape, weights);
  const std::int64_t grain = row_grain(taps_of(shape) * shape.width * shape.outputs);
  parallel_ranges(shape.images * shape.height, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t number = begin; number < end; ++number) {
      const ImageLine line(number, shape.height, shape.width);
      for (std::int64_t column = 0; column < shape.width; ++column) {
        for (std::int64_t first = 0; first < shape.channels; first += kChannelStrip) {
          float sums[kChannelStrip] = {};
          input_strip(shape, line, column, first, dy, turned, sums);
          activate(Activation::kNone, sums, dx + (line.first + column) * shape.channels + first,
                   std::min(kChannelStrip, shape.channels - first));
        }
      }
    }
  });
}

template <typename T>
void depthwise_backward_weights(const ConvShape& shape, const T* x, const T* dy, float* dweights) {
  const std::int64_t strips = (shape.outputs + kChannelStrip - 1) / kChannelStrip;
  const std::int64_t grain = row_grain(kChannelStrip * shape.images * shape.out_height * shape.out_width);
  parallel_ranges(taps_of(shape) * strips, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t each = begin; each < end; ++each) {
      tap_gradient(shape, each / strips, each % strips * kChannelStrip, x, dy, dweights);
    }
  });
}

constexpr std::int64_t kOutputs = 16;  // of a strip

// A block of a strip's pixels: the activation's input, and its gradient.
struct StripBlock {
  float sums[kSumBlock * kOutputs];
  float gradients[kSumBlock * kOutputs];
};

template <typename T>
float product_operand(const ConvShape& shape, T x) {
  return shape.options.precision == Precision::kBF16 ? widened(nearest_bf16(value(x))) : value(x);
}

// Packs the weights of outputs [first, first + kOutputs) as (KH, KW, C, kOutputs), 0 after the last.
template <typename W>
void gather_weights(const ConvShape& shape, const W* weights, std::int64_t first, float* strip) {
  const std::int64_t values = shape.kernel_height * shape.kernel_width * shape.channels;
  for (std::int64_t i = 0; i < values; ++i) {
    for (std::int64_t k = 0; k < kOutputs; ++k) {
      const bool there = first + k < shape.outputs;
      strip[i * kOutputs + k] = there ? product_operand(shape, weights[(first + k) * values + i]) : 0.0F;
    }
  }
}

// Adds the products of one pixel's window.
template <typename T>
void add_window(const ConvShape& shape, const T* x, const float* strip, std::int64_t pixel, float* sums) {
  const std::int64_t line = pixel / shape.out_width;
  const ConvOptions& o = shape.options;
  const std::int64_t top = line % shape.out_height * o.stride.height - o.pad_top;
  const std::int64_t left = pixel % shape.out_width * o.stride.width - o.pad_left;
  const T* image = x + line / shape.out_height * shape.height * shape.width * shape.channels;
  for (std::int64_t row = 0; row < shape.kernel_height; ++row) {
    for (std::int64_t column = 0; column < shape.kernel_width; ++column, strip += shape.channels * kOutputs) {
      const std::int64_t y = top + row * o.dilation.height, x_at = left + column * o.dilation.width;
      if (y < 0 || y >= shape.height || x_at < 0 || x_at >= shape.width) continue;
      const T* from = image + (y * shape.width + x_at) * shape.channels;
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        const float value = product_operand(shape, from[c]);
        for (std::int64_t k = 0; k < kOutputs; ++k) sums[k] += value * strip[c * kOutputs + k];
      }
    }
  }
}

template <typename T, typename W>
void strip_gradient(const ConvShape& shape, const ConvBiasOperands<T, W>& of, Activation activation,
                    std::int64_t first, float* dbias) {
  const std::int64_t values = shape.kernel_height * shape.kernel_width * shape.channels;
  const std::int64_t width = std::min(kOutputs, shape.outputs - first);
  auto* strip = reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(values * kOutputs) * sizeof(float)));
  gather_weights(shape, of.weights, first, strip);
  float bias[kOutputs] = {};
  for (std::int64_t k = 0; k < width && of.bias != nullptr; ++k) bias[k] = of.bias[first + k];
  double totals[kOutputs] = {};
  StripBlock block{};
  const std::int64_t pixels = shape.images * shape.out_height * shape.out_width;
  for (std::int64_t begin = 0; begin < pixels; begin += kSumBlock) {
    const std::int64_t count = std::min(kSumBlock, pixels - begin);
    for (std::int64_t p = 0; p < count; ++p) {
      std::copy_n(bias, kOutputs, block.sums + p * kOutputs);
      add_window(shape, of.x, strip, begin + p, block.sums + p * kOutputs);
      const T* dy = of.dy + (begin + p) * shape.outputs + first;
      for (std::int64_t k = 0; k < width; ++k) block.gradients[p * kOutputs + k] = value(dy[k]);
    }
    activate_backward(activation, block.sums, block.gradients, block.gradients, count * kOutputs);
    for (std::int64_t k = 0; k < width; ++k) {
      float sum = 0;
      for (std::int64_t p = 0; p < count; ++p) sum += block.gradients[p * kOutputs + k];
      totals[k] += static_cast<double>(sum);
    }
  }
  for (std::int64_t k = 0; k < width; ++k) dbias[first + k] = static_cast<float>(totals[k]);
}

template <typename T, typename W>
void conv_bias_backward(const ConvShape& shape, const ConvBiasOperands<T, W>& operands, Activation activation,
                        float* dbias) {
  const std::int64_t strips = (shape.outputs + kOutputs - 1) / kOutputs;
  parallel_ranges(strips, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t strip = first; strip < last; ++strip) {
      strip_gradient(shape, operands, activation, strip * kOutputs, dbias);
    }
  });
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::ConvBiasBackward& of) {
  check_recomputed(of, of.options.groups == 1);
  submit(stream, [=, shape = conv_shape(of.x, of.weights, of.dy, of.options)] {
    with_type(of.x, [&]<typename T>(T) {
      with_type(of.weights, [&]<typename W>(W) {
        const cpu::ConvBiasOperands<T, W> operands{of.x.as<T>(), of.weights.as<W>(), f32(of.bias), of.dy.as<T>()};
        cpu::conv_bias_backward(shape, operands, of.activation, f32(of.dbias));
      });
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::DepthwiseForward& of) {
  submit(stream, [=, shape = conv_shape(of.x, of.weights, of.y, of.options)] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::depthwise_forward(shape, of.x.as<T>(), f32(of.weights), f32(of.bias), of.activation, of.y.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::DepthwiseBackwardData& of) {
  submit(stream, [=, shape = conv_shape(of.dx, of.weights, of.dy, of.options)] {
    with_type(of.dx, [&]<typename T>(T) {
      cpu::depthwise_backward_data(shape, of.dy.as<T>(), f32(of.weights), of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::DepthwiseBackwardWeights& of) {
  submit_column_sums(stream, of.dy, of.dbias);
  if (!of.dweights.defined()) return;
  submit(stream, [=, shape = conv_shape(of.x, of.dweights, of.dy, of.options)] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::depthwise_backward_weights(shape, of.x.as<T>(), of.dy.as<T>(), f32(of.dweights));
    });
  });
}

}  // namespace headrace::cpu
