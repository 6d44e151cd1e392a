// Probabilities over the last axis. If it is a model's last layer, a cross-entropy skips it and takes the logits.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class SoftmaxLayer final : public Layer {
 public:
  using Layer::Layer;

  std::string kind() const override { return "softmax"; }
  LayerTraits traits(Mode) const override {
    return {.backward_in_place = true, .backward_reads_output = true, .softmax = true, .f32 = true};
  }
  void forward(LayerContext& context) const override {
    context.kernels.softmax(context.stream, as_matrix(context.inputs[0]), as_matrix(context.output));
  }
  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.softmax_backward(context.stream, as_matrix(context.output), as_matrix(context.output_gradient),
                                     as_matrix(context.input_gradients[0]));
  }
};

}  // namespace headrace
