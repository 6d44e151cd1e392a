#include "headrace/train/net/layers/scale_layer.h"

#include <cmath>

#include "headrace/devices/base/error.h"

namespace headrace {

ScaleLayer::ScaleLayer(const std::string& name, const Shape& input, float factor)
    : Layer(name, input), factor_(factor) {
  if (!std::isfinite(factor)) {
    throw ConfigError(label(name, "scale") + " needs a finite factor, got " + std::to_string(factor));
  }
}

LayerAttributes ScaleLayer::attributes() const { return {{"factor", factor_}}; }

std::shared_ptr<const Layer> ScaleLayer::from(const LayerRecord& record) {
  return std::make_shared<ScaleLayer>(record.name, only_input(record), record.attributes.number("factor"));
}

void ScaleLayer::forward(LayerContext& context) const {
  context.kernels.scale(context.stream, context.inputs[0], factor_, context.output);
}

void ScaleLayer::backward(LayerContext& context) const {
  if (!context.input_gradients[0].defined()) return;
  context.kernels.scale(context.stream, context.output_gradient, factor_, context.input_gradients[0]);
}

}  // namespace headrace
