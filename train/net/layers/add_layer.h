// Sums two or more results of one shape: a residual connection.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class AddLayer final : public Layer {
 public:
  AddLayer(const std::string& name, const std::vector<Shape>& inputs);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "add"; }
  LayerTraits traits(Mode) const override { return {.backward_in_place = true}; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;
};

}  // namespace headrace
