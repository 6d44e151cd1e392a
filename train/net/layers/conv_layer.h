// Two-dimensional convolution over (H, W, C).
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

// The weights are (filters, KH, KW, C / groups).
class ConvLayer final : public Layer {
 public:
  ConvLayer(const std::string& name, const Shape& input, int filters, const ConvLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "conv"; }
  LayerAttributes attributes() const override;
  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .variables_beside = true};
  }
  bool recomputes(const Kernels& kernels, DType activations, Precision precision) const override;
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  ConvOptions geometry(Precision precision) const;

  Shape input_;
  ConvLayerOptions options_;
};

}  // namespace headrace
