#include "headrace/train/net/layers/activation_layer.h"

namespace headrace {

std::string ActivationLayer::kind() const {
  switch (activation_) {
    case Activation::kRelu: return "relu";
    case Activation::kGelu: return "gelu";
    case Activation::kSilu: return "silu";
    case Activation::kNone: break;
  }
  return "linear";
}

// ReLU's derivative follows from its result: its input need not be kept, and a convolution before it may apply it.
// The others need their input.
LayerTraits ActivationLayer::traits(Mode) const {
  const bool relu = activation_ == Activation::kRelu;
  return {.backward_in_place = true, .backward_reads_input = !relu, .backward_reads_output = relu};
}

void ActivationLayer::forward(LayerContext& context) const {
  context.kernels.activation_forward(context.stream, activation_, context.inputs[0], context.output);
}

void ActivationLayer::backward(LayerContext& context) const {
  if (!context.input_gradients[0].defined()) return;
  const bool relu = activation_ == Activation::kRelu;
  context.kernels.activation_backward(context.stream, activation_, relu ? context.output : context.inputs[0],
                                      context.output_gradient, context.input_gradients[0]);
}

}  // namespace headrace
