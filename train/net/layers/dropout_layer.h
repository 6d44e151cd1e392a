// Drops elements at random while training; the mask is a function of seed, step and global row, so it does not
// depend on the number of replicas. Outside training it is the identity.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const std::string& name, const Shape& input, float rate);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "dropout"; }
  LayerAttributes attributes() const override;
  LayerTraits traits(Mode mode) const override {
    return {.view = mode != Mode::kTrain, .backward_in_place = true};
  }
  void forward(LayerContext& context) const override { apply(context, context.inputs[0], context.output); }
  void backward(LayerContext& context) const override;

 private:
  void apply(LayerContext& context, const TensorView& from, const TensorView& to) const;

  float rate_;
};

}  // namespace headrace
