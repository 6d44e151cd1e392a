// Flattens any shape to one axis. Moves nothing: a view forward, in place backward.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class FlattenLayer final : public Layer {
 public:
  FlattenLayer(const std::string& name, const Shape& input) : Layer(name, Shape{input.elements()}) {}

  std::string kind() const override { return "flatten"; }
  LayerTraits traits(Mode) const override { return {.view = true, .backward_in_place = true}; }
  void forward(LayerContext&) const override {}
  void backward(LayerContext& context) const override {
    const TensorView& into = context.input_gradients[0];
    if (!into.defined() || into.data == context.output_gradient.data) return;
    context.stream.copy(into.data, context.output_gradient.data, into.bytes());
  }
};

}  // namespace headrace
