// Chooses the convolutions that our own kernels (direct_convolution_calls.h) compute instead of cuDNN. Private to
// the CUDA backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// A window small enough that a thread keeps the weights of its outputs in registers.
template <int kHigh, int kWide, int kDeep>
struct ConvWindow {
  static constexpr int kHeight = kHigh, kWidth = kWide, kChannels = kDeep;
  static constexpr int kLine = kWide * kDeep;  // values of the window in one line of the image
  static constexpr int kValues = kHigh * kLine;
};

// Calls function(window) for weights (O, KH, KW, C). Returns whether there is such a window.
template <typename Function>
bool by_conv_window(const Shape& weights, const Function& function) {
  const auto is = [&](int height, int width, int channels) {
    return weights[1] == height && weights[2] == width && weights[3] == channels;
  };
  if (is(2, 2, 3)) return function(ConvWindow<2, 2, 3>{}), true;
  if (is(3, 3, 1)) return function(ConvWindow<3, 3, 1>{}), true;
  return false;
}

inline constexpr int kDirectOutputs = 8;  // outputs are a multiple of it: the widest pack

// Returns whether to compute directly. The products are so few that the bytes decide: a
// direct convolution reads x and writes y once each, bias and activation included. `activations` is the type of x
// and y, which must be that of the products.
inline bool computes_directly(DType activations, const Shape& weights, const ConvOptions& options) {
  const bool padded =
      options.pad_top > 0 || options.pad_left > 0 || options.pad_bottom > 0 || options.pad_right > 0;
  const bool plain = options.stride.height == options.stride.width && options.dilation == 1 && options.groups == 1;
  const DType products = options.precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
  return !padded && plain && activations == products && weights[0] % kDirectOutputs == 0 &&
         by_conv_window(weights, [](auto) {});
}

}  // namespace headrace::cuda
