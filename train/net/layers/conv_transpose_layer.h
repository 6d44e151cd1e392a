// The gradient of a two-dimensional convolution as a layer of its own: it makes (H, W, C) larger.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

// The weights (C, KH, KW, filters / groups) are those of the convolution from the result to the input.
class ConvTransposeLayer final : public Layer {
 public:
  ConvTransposeLayer(const std::string& name, const Shape& input, int filters,
                     const ConvTransposeLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "conv_transpose"; }
  LayerAttributes attributes() const override;
  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .variables_beside = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  // Of the convolution from the result to the input.
  ConvOptions geometry(Precision precision) const;

  Shape input_;
  ConvTransposeLayerOptions options_;
};

}  // namespace headrace
