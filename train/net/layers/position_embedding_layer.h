// Adds a trained vector to each position of a sequence.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class PositionEmbeddingLayer final : public Layer {
 public:
  PositionEmbeddingLayer(const std::string& name, const Shape& input);

  std::string kind() const override { return "position_embedding"; }
  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override { return {.backward_in_place = true}; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;
};

}  // namespace headrace
