// Convolutions through oneDNN. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cpu/onednn_operands.h"

namespace headrace {

// x (images, height, width, channels), weights (outputs, kernel_height, kernel_width, channels),
// y (images, out_height, out_width, outputs).
struct ConvShape {
  std::int64_t images = 0;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t out_height = 0, out_width = 0, outputs = 0;
  std::int64_t kernel_height = 0, kernel_width = 0;
  ConvOptions options;

  std::int64_t x_elements() const noexcept { return images * height * width * channels; }
  std::int64_t y_elements() const noexcept { return images * out_height * out_width * outputs; }
  std::int64_t weights_elements() const noexcept { return outputs * kernel_height * kernel_width * channels; }
};

// `bias` and `dbias` may be null.
BoundKernel conv_forward(OneDnn&, const ConvShape&, float* x, float* weights, float* bias, float* y, Activation);
BoundKernel conv_backward_data(OneDnn&, const ConvShape&, float* dy, float* weights, float* dx);
BoundKernel conv_backward_weights(OneDnn&, const ConvShape&, float* x, float* dy, float* dweights, float* dbias);

}  // namespace headrace
