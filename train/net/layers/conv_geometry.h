// The windows of convolutions: the extents that they give, and their padding. Private to net/layers.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

struct ConvWindow {
  int kernel = 3, stride = 1;
  ConvPadding padding = ConvPadding::kSame;
};

// Throws ConfigError if `who` cannot have such windows over an input of this shape.
void check_window(const std::string& who, const Shape& input, int filters, const ConvWindow& window);
// Returns the shape of a convolution's result. Throws ConfigError as check_window() does, or if it would be empty.
Shape convolved_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window);
// Returns what kernels need to convolve images of this shape.
ConvOptions conv_options(const Shape& input, const ConvWindow& window, Precision precision);

// The padding's word in attributes, and its inverse, which throws ConfigError.
std::string to_text(ConvPadding padding);
ConvPadding padding_of(const LayerRecord& record, const std::string& kind);

}  // namespace headrace
