// The windows of convolutions: the extents that they give, their padding and their attributes. Private to
// net/layers.
#pragma once

#include <optional>

#include "headrace/train/net/layers/layer.h"

namespace headrace {

struct ConvWindow {
  HeightWidth kernel = 3, stride = 1, dilation = 1;
  ConvPadding padding = ConvPadding::kSame;
  HeightWidth pixels = 0;  // of padding, for ConvPadding::kPixels
  int groups = 1;          // of channels
};

// Returns the window of the options of a convolution of any kind.
template <typename Options>
ConvWindow window_of(const Options& options) {
  ConvWindow window{.kernel = options.kernel,
                    .stride = options.stride,
                    .dilation = options.dilation,
                    .padding = options.padding,
                    .pixels = options.pixels};
  if constexpr (requires { options.groups; }) window.groups = options.groups;
  return window;
}

// Returns the shape of a convolution's result. Throws ConfigError if `who` cannot have such windows over an input
// of this shape, or if the result would be empty.
Shape convolved_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window);
// Returns what kernels need to convolve images of this shape.
ConvOptions conv_options(const Shape& input, const ConvWindow& window, Precision precision);

// Returns the shape of which a convolution with this window gives `input`; see ConvTransposeLayerOptions. Throws
// ConfigError as convolved_shape() does, or if the output padding does not fit.
Shape transposed_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window,
                       const HeightWidth& output_padding);
// Returns what kernels need for that convolution, from `result` to `input`.
ConvOptions transposed_options(const Shape& input, const Shape& result, const ConvWindow& window,
                               Precision precision);

}  // namespace headrace
