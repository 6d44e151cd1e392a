// Two-dimensional convolution of each channel of (H, W, C) by itself.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

// The weights are (C multiplier, KH, KW, 1), as a convolution's of one channel.
class DepthwiseConvLayer final : public Layer {
 public:
  DepthwiseConvLayer(const std::string& name, const Shape& input, const DepthwiseConvLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "depthwise_conv"; }
  LayerAttributes attributes() const override;
  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .variables_beside = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  ConvOptions geometry() const;

  Shape input_;
  DepthwiseConvLayerOptions options_;
};

}  // namespace headrace
