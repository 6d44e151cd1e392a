// ReLU, GELU or SiLU, element by element.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const std::string& name, const Shape& input, Activation activation)
      : Layer(name, input), activation_(activation) {}

  // Creates a layer of this activation.
  template <Activation kActivation>
  static std::shared_ptr<const Layer> from(const LayerRecord& record) {
    return std::make_shared<ActivationLayer>(record.name, only_input(record), kActivation);
  }

  std::string kind() const override;
  LayerTraits traits(Mode) const override;
  std::optional<Activation> as_epilogue() const override { return activation_; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  Activation activation_;
};

}  // namespace headrace
