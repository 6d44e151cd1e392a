// The largest element of each window.
#pragma once

#include "headrace/train/layers/layer.h"

namespace headrace {

class MaxPoolLayer final : public Layer {
 public:
  MaxPoolLayer(const std::string& name, const Shape& input, int window, const PoolLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "max_pool"; }
  LayerAttributes attributes() const override;
  std::vector<SavedSpec> saved(std::int64_t rows) const override;
  std::optional<PoolOptions> as_pooling() const override { return geometry_; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  PoolOptions geometry_;
};

}  // namespace headrace
