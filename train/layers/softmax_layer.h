// Probabilities from logits. Only as a model's last layer; a cross-entropy takes the logits, without this layer.
#pragma once

#include "headrace/train/layers/layer.h"

namespace headrace {

class SoftmaxLayer final : public Layer {
 public:
  using Layer::Layer;

  std::string kind() const override { return "softmax"; }
  LayerTraits traits(Mode) const override {
    return {.backward_in_place = true, .backward_reads_output = true, .only_last = true};
  }
  void forward(LayerContext& context) const override {
    context.kernels.softmax(context.stream, as_matrix(context.inputs[0]), as_matrix(context.output));
  }
  void backward(LayerContext& context) const override {
    context.kernels.softmax_backward(context.stream, as_matrix(context.output), as_matrix(context.output_gradient),
                                     as_matrix(context.input_gradients[0]));
  }
};

}  // namespace headrace
