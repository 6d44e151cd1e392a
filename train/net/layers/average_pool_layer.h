// The mean of each window.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class AveragePoolLayer final : public Layer {
 public:
  AveragePoolLayer(const std::string& name, const Shape& input, int window, const PoolLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "average_pool"; }
  LayerAttributes attributes() const override;
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  PoolOptions geometry_;
};

}  // namespace headrace
