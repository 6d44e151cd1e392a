// Concatenates results on the last axis; all other axes must match.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class ConcatLayer final : public Layer {
 public:
  ConcatLayer(const std::string& name, const std::vector<Shape>& inputs);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "concat"; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;
};

}  // namespace headrace
