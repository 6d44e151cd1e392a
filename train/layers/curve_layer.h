// Sigmoid or hyperbolic tangent, element by element.
#pragma once

#include "headrace/train/layers/layer.h"

namespace headrace {

template <Curve kCurve>
class CurveLayer final : public Layer {
 public:
  using Layer::Layer;

  std::string kind() const override { return kCurve == Curve::kSigmoid ? "sigmoid" : "tanh"; }
  LayerTraits traits(Mode) const override { return {.backward_in_place = true, .backward_reads_output = true}; }
  void forward(LayerContext& context) const override {
    context.kernels.curve_forward(context.stream, kCurve, context.inputs[0], context.output);
  }
  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.curve_backward(context.stream, kCurve, context.output, context.output_gradient,
                                   context.input_gradients[0]);
  }
};

}  // namespace headrace
