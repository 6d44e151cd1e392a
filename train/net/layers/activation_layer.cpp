#include "headrace/train/net/layers/activation_layer.h"

namespace headrace {

bool ActivationLayer::slope_from_result() const noexcept {
  return activation_ == Activation::kRelu || headrace::slope_from_result(activation_);
}

// If the derivative follows from the result, the input need not be kept; a convolution before a ReLU may apply it.
LayerTraits ActivationLayer::traits(Mode) const {
  const bool result = slope_from_result();
  return {.backward_in_place = true, .backward_reads_input = !result, .backward_reads_output = result};
}

std::optional<Activation> ActivationLayer::as_epilogue() const {
  return is_fused(activation_) ? std::optional(activation_) : std::nullopt;
}

void ActivationLayer::forward(LayerContext& context) const {
  context.kernels.activation_forward(context.stream, activation_, context.inputs[0], context.output);
}

void ActivationLayer::backward(LayerContext& context) const {
  if (!context.input_gradients[0].defined()) return;
  context.kernels.activation_backward(context.stream, activation_,
                                      slope_from_result() ? context.output : context.inputs[0],
                                      context.output_gradient, context.input_gradients[0]);
}

}  // namespace headrace
