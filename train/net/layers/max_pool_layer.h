// The largest element of each window.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

// Return the geometry of a pooling, and the shape of a pooled image. Throws ConfigError, naming `who`.
PoolOptions pool_geometry(int window, const PoolLayerOptions& options);
Shape pooled_shape(const std::string& who, const Shape& input, const PoolOptions& geometry);

class MaxPoolLayer final : public Layer {
 public:
  MaxPoolLayer(const std::string& name, const Shape& input, int window, const PoolLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "max_pool"; }
  LayerAttributes attributes() const override;
  std::vector<SavedSpec> saved(const StepShape& step) const override;
  std::optional<PoolOptions> as_pooling() const override {
    return geometry_.pad == 0 ? std::optional(geometry_) : std::nullopt;
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  PoolOptions geometry_;
};

}  // namespace headrace
