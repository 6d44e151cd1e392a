// y = x weights' + bias over the last axis.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class DenseLayer final : public Layer {
 public:
  DenseLayer(const std::string& name, const Shape& input, int units, const DenseLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "dense"; }
  LayerAttributes attributes() const override;
  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .casts = true, .variables_beside = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  std::int64_t features_;
  std::int64_t units_;
  DenseLayerOptions options_;
};

}  // namespace headrace
