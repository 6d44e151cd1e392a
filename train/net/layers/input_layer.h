// A field of the batch, placed into the step's memory before the step starts.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class InputLayer final : public Layer {
 public:
  using Layer::Layer;

  std::string kind() const override { return "input"; }
  LayerAttributes attributes() const override {
    return {{"shape", std::vector<std::int64_t>(shape().extents().begin(), shape().extents().end())}};
  }
  void forward(LayerContext&) const override {}
  void backward(LayerContext&) const override {}
};

}  // namespace headrace
