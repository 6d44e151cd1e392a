#include "headrace/train/net/layers/dropout_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {

DropoutLayer::DropoutLayer(const std::string& name, const Shape& input, float rate)
    : Layer(name, input), rate_(rate) {
  if (!(rate >= 0.0F && rate < 1.0F)) {
    throw ConfigError(label(name, "dropout") + " needs a rate of at least 0 and below 1, got " +
                      std::to_string(rate));
  }
}

LayerAttributes DropoutLayer::attributes() const { return {{"rate", rate_}}; }

std::shared_ptr<const Layer> DropoutLayer::from(const LayerRecord& record) {
  return std::make_shared<DropoutLayer>(record.name, only_input(record), record.attributes.number("rate"));
}

void DropoutLayer::backward(LayerContext& context) const {
  if (context.input_gradients[0].defined()) apply(context, context.output_gradient, context.input_gradients[0]);
}

void DropoutLayer::apply(LayerContext& context, const TensorView& from, const TensorView& to) const {
  context.kernels.dropout(context.stream, from, rate_, context.seed, context.id, context.scalars, to);
}

}  // namespace headrace
