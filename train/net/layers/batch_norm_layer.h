// Batch normalisation over all axes but the last, with the activation after it and, in training, the max pooling
// before it.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const std::string& name, const Shape& input, const BatchNormLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "batch_norm"; }
  LayerAttributes attributes() const override;
  std::vector<VariableSpec> variables() const override;
  std::vector<SavedSpec> saved(const StepShape& step) const override;
  LayerTraits traits(Mode mode) const override;
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  Kernels::BatchNorm bind(const LayerContext& context) const;
  void forward_over_replicas(LayerContext& context) const;
  void backward_over_replicas(LayerContext& context) const;

  BatchNormLayerOptions options_;
};

}  // namespace headrace
