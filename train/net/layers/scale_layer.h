// Multiplies the input by a fixed factor.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class ScaleLayer final : public Layer {
 public:
  ScaleLayer(const std::string& name, const Shape& input, float factor);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "scale"; }
  LayerAttributes attributes() const override;
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  float factor_;
};

}  // namespace headrace
