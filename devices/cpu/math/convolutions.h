// Windows over images: oneDNN's convolutions with their plans, depthwise ones, the gradient of a bias, pooling.
// Private to the CPU backend.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// The oneDNN primitives of convolutions, and their layouts.

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

// Convolutions through oneDNN.

// `bias` and `dbias` may be null.
BoundKernel conv_forward(OneDnn&, const ConvShape&, const Operand& x, const Operand& weights, float* bias,
                         const Operand& y, Activation);
BoundKernel conv_backward_data(OneDnn&, const ConvShape&, const Operand& dy, const Operand& weights,
                               const Operand& dx);
BoundKernel conv_backward_weights(OneDnn&, const ConvShape&, const Operand& x, const Operand& dy, float* dweights,
                                  float* dbias);

}  // namespace headrace

// Depthwise convolutions.

namespace headrace::cpu {

// Implement Kernels' functions of these names; T, float or BFloat16, is the type of activations and their
// gradients. The same bits with any number of threads. REQUIRES: shape.outputs is a multiple of shape.channels.
template <typename T>
void depthwise_forward(const ConvShape& shape, const T* x, const float* weights, const float* bias,
                       Activation activation, T* y);
template <typename T>
void depthwise_backward_data(const ConvShape& shape, const T* dy, const float* weights, T* dx);
template <typename T>
void depthwise_backward_weights(const ConvShape& shape, const T* x, const T* dy, float* dweights);

// The gradient of a convolution's bias if the activation's input was not stored.

// T is float or BFloat16, the type of activations; W that of weights.
template <typename T, typename W>
struct ConvBiasOperands {
  const T* x;
  const W* weights;
  const float* bias;  // null: 0
  const T* dy;
};

// Implements Kernels::conv_bias_backward(); the same bits with any number of threads.
template <typename T, typename W>
void conv_bias_backward(const ConvShape& shape, const ConvBiasOperands<T, W>& operands, Activation activation,
                        float* dbias);

// Pooling over channels-last images.

// A window over (images, height, width, channels); window^2 <= 256, pad <= window / 2.
struct PoolGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
  std::int64_t window = 0, stride = 0;
  std::int64_t pad = 0;  // max pooling only

  std::int64_t out_height() const noexcept { return (height + 2 * pad - window) / stride + 1; }
  std::int64_t out_width() const noexcept { return (width + 2 * pad - window) / stride + 1; }
};

// T is float or BFloat16.
template <typename T>
void max_pool_forward(const PoolGeometry& geometry, const T* x, T* y, std::uint8_t* argmax);
template <typename T>
void max_pool_backward(const PoolGeometry& geometry, const T* dy, const std::uint8_t* argmax, T* dx);

// x (images, pixels, channels), y (images, channels).
template <typename T>
void global_average_forward(const T* x, T* y, std::int64_t images, std::int64_t pixels, std::int64_t channels);
template <typename T>
void global_average_backward(const T* dy, T* dx, std::int64_t images, std::int64_t pixels, std::int64_t channels);

// T is float or BFloat16.
template <typename T>
void average_pool_forward(const PoolGeometry& geometry, const T* x, T* y);
template <typename T>
void average_pool_backward(const PoolGeometry& geometry, const T* dy, T* dx);

}  // namespace headrace::cpu
