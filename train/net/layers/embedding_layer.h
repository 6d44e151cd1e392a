// A trained vector for each whole number.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const std::string& name, const Shape& input, int entries, int width);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "embedding"; }
  LayerAttributes attributes() const override;
  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override { return {.backward_reads_input = true, .f32 = true}; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  int entries_;
};

}  // namespace headrace
