// The mean of each channel: (H, W, C) or (T, C) to (C).
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class GlobalAveragePoolLayer final : public Layer {
 public:
  GlobalAveragePoolLayer(const std::string& name, const Shape& input);

  std::string kind() const override { return "global_average_pool"; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;
};

}  // namespace headrace
