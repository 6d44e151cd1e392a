// An activation that is a function of single elements.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class ActivationLayer final : public Layer {
 public:
  // REQUIRES: neither kNone nor kSoftmax.
  ActivationLayer(const std::string& name, const Shape& input, Activation activation)
      : Layer(name, input), activation_(activation) {}

  // Creates a layer of this activation.
  template <Activation kActivation>
  static std::shared_ptr<const Layer> from(const LayerRecord& record) {
    return std::make_shared<ActivationLayer>(record.name, only_input(record), kActivation);
  }

  std::string kind() const override { return to_text(activation_); }
  LayerTraits traits(Mode) const override;
  std::optional<Activation> as_epilogue() const override;
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  bool slope_from_result() const noexcept;

  Activation activation_;
};

}  // namespace headrace
