// Sigmoid or hyperbolic tangent, element by element.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

template <Sigmoidal kFunction>
class SigmoidalLayer final : public Layer {
 public:
  using Layer::Layer;

  std::string kind() const override { return kFunction == Sigmoidal::kSigmoid ? "sigmoid" : "tanh"; }
  LayerTraits traits(Mode) const override { return {.backward_in_place = true, .backward_reads_output = true}; }
  void forward(LayerContext& context) const override {
    context.kernels.sigmoidal_forward(context.stream, kFunction, context.inputs[0], context.output);
  }
  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.sigmoidal_backward(context.stream, kFunction, context.output, context.output_gradient,
                                       context.input_gradients[0]);
  }
};

}  // namespace headrace
