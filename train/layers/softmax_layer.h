// Probabilities from logits. Only as a model's last layer: training fuses it with the loss.
#pragma once

#include "headrace/devices/base/check.h"
#include "headrace/train/layers/layer.h"

namespace headrace {

class SoftmaxLayer final : public Layer {
 public:
  using Layer::Layer;

  std::string kind() const override { return "softmax"; }
  LayerTraits traits(Mode) const override { return {.only_last = true}; }
  void forward(LayerContext& context) const override {
    context.kernels.softmax(context.stream, as_matrix(context.inputs[0]), as_matrix(context.output));
  }
  void backward(LayerContext&) const override { HEADRACE_CHECK(false, "softmax was not fused with the loss"); }
};

}  // namespace headrace
