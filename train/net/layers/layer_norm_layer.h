// Normalises the last axis of each example by its own mean and variance.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class LayerNormLayer final : public Layer {
 public:
  LayerNormLayer(const std::string& name, const Shape& input, const LayerNormLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "layer_norm"; }
  LayerAttributes attributes() const override;
  std::vector<VariableSpec> variables() const override;
  std::vector<SavedSpec> saved(const StepShape& step) const override;
  LayerTraits traits(Mode) const override {
    return {.backward_in_place = true, .backward_reads_input = true, .f32 = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  Kernels::LayerNorm norm(const LayerContext& context) const;

  LayerNormLayerOptions options_;
};

}  // namespace headrace
