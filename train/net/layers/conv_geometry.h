// The windows of convolutions: the extents that they give, their padding and their attributes. Private to
// net/layers.
#pragma once

#include <optional>

#include "headrace/train/net/layers/layer.h"

namespace headrace {

struct ConvWindow {
  int kernel = 3, stride = 1, dilation = 1;
  ConvPadding padding = ConvPadding::kSame;
  int pixels = 0;  // of padding, for ConvPadding::kPixels

  // Returns the pixels from the first tap to the last one.
  int span() const noexcept { return (kernel - 1) * dilation + 1; }
};

// Returns the window of the options of a convolution of any kind.
template <typename Options>
ConvWindow window_of(const Options& options) {
  return {.kernel = options.kernel,
          .stride = options.stride,
          .dilation = options.dilation,
          .padding = options.padding,
          .pixels = options.pixels};
}

// Throws ConfigError if `who` cannot have such windows over an input of this shape.
void check_window(const std::string& who, const Shape& input, int filters, const ConvWindow& window);
// Returns the shape of a convolution's result. Throws ConfigError as check_window() does, or if it would be empty.
Shape convolved_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window);
// Returns what kernels need to convolve images of this shape.
ConvOptions conv_options(const Shape& input, const ConvWindow& window, Precision precision);

// Returns the shape of which a convolution with this window gives `input`; see ConvTransposeLayerOptions. Throws
// ConfigError as check_window() does, if the output padding does not fit, or if the result would be empty.
Shape transposed_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window,
                       std::optional<int> output_padding);
// Returns what kernels need for that convolution, from `result` to `input`.
ConvOptions transposed_options(const Shape& input, const Shape& result, const ConvWindow& window,
                               Precision precision);

// The padding's word in attributes.
std::string to_text(ConvPadding padding);
// Adds the values of the window that are not the defaults, but for those that every convolution writes.
void add_window(LayerAttributes& attributes, const ConvWindow& window);
// Returns the window in a record. Throws ConfigError if one of its attributes is invalid.
ConvWindow window_from(const LayerRecord& record, const std::string& kind);

}  // namespace headrace
