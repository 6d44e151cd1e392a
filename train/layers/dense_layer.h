// y = x weights' + bias over the last axis.
#pragma once

#include "headrace/train/layers/layer.h"

namespace headrace {

class DenseLayer final : public Layer {
 public:
  DenseLayer(const std::string& name, const Shape& input, int units, const DenseLayerOptions& options);

  std::string kind() const override { return "dense"; }
  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .casts = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  std::int64_t features_;
  std::int64_t units_;
  DenseLayerOptions options_;
};

}  // namespace headrace
