// Convolutions through oneDNN, with their plans. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// x (images, height, width, channels), weights (outputs, kernel_height, kernel_width, group_channels()),
// y (images, out_height, out_width, outputs).
struct ConvShape {
  std::int64_t images = 0;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t out_height = 0, out_width = 0, outputs = 0;
  std::int64_t kernel_height = 0, kernel_width = 0;
  ConvOptions options;

  std::int64_t x_elements() const noexcept { return images * height * width * channels; }
  std::int64_t y_elements() const noexcept { return images * out_height * out_width * outputs; }
  std::int64_t group_channels() const noexcept { return channels / options.groups; }
  std::int64_t weights_elements() const noexcept {
    return outputs * kernel_height * kernel_width * group_channels();
  }
};

inline ConvShape conv_shape(const TensorView& x, const TensorView& weights, const TensorView& y,
                            const ConvOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .out_height = y.shape[1],
          .out_width = y.shape[2],
          .outputs = y.shape[3],
          .kernel_height = weights.shape[1],
          .kernel_width = weights.shape[2],
          .options = options};
}

enum class ConvPass : std::int64_t { kForward = 1, kBackwardData = 2, kBackwardWeights = 3 };

// Identifies one primitive.
struct WantedConv {
  ConvPass pass = ConvPass::kForward;
  ConvShape shape;
  dnnl::memory::data_type type = dnnl::memory::data_type::f32;    // of the inputs
  dnnl::memory::data_type result = dnnl::memory::data_type::f32;  // of the written activations
  const float* bias = nullptr;                                    // or the destination of its gradient

  bool has_bias() const noexcept { return bias != nullptr; }
};

// Returns the plan. Its layout `source` is that of x or its gradient, `result` that of y or its gradient.
std::shared_ptr<const OneDnnPlan> conv_plan(OneDnn& onednn, const WantedConv& wanted);

// `bias` and `dbias` may be null.
BoundKernel conv_forward(OneDnn&, const ConvShape&, const Operand& x, const Operand& weights, float* bias,
                         const Operand& y, Activation);
BoundKernel conv_backward_data(OneDnn&, const ConvShape&, const Operand& dy, const Operand& weights,
                               const Operand& dx);
BoundKernel conv_backward_weights(OneDnn&, const ConvShape&, const Operand& x, const Operand& dy, float* dweights,
                                  float* dbias);

}  // namespace headrace
