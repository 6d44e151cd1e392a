#include "headrace/devices/cpu/math/conv_bias.h"

#include <algorithm>

#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/sums.h"
#include "headrace/devices/cpu/math/workspace.h"

namespace headrace::cpu {
namespace {

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

}  // namespace

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
template void conv_bias_backward(const ConvShape&, const ConvBiasOperands<float, float>&, Activation, float*);
template void conv_bias_backward(const ConvShape&, const ConvBiasOperands<float, BFloat16>&, Activation, float*);
template void conv_bias_backward(const ConvShape&, const ConvBiasOperands<BFloat16, float>&, Activation, float*);
template void conv_bias_backward(const ConvShape&, const ConvBiasOperands<BFloat16, BFloat16>&, Activation,
                                 float*);

}  // namespace headrace::cpu
