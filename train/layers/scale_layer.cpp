#include "headrace/train/layers/scale_layer.h"

#include <cmath>

#include "headrace/devices/base/error.h"

namespace headrace {

ScaleLayer::ScaleLayer(const std::string& name, const Shape& input, float factor)
    : Layer(name, input), factor_(factor) {
  if (input.rank() < 1)
    throw ConfigError(label(name, "scale") + " needs at least one axis, got " + input.to_string());
  if (!std::isfinite(factor)) {
    throw ConfigError(label(name, "scale") + " needs a finite factor, got " + std::to_string(factor));
  }
}

// Constants, so that the kernel which scales by channel finds them on the device.
std::vector<VariableSpec> ScaleLayer::variables() const {
  const Shape channels{shape().back()};
  return {{.name = "factor",
           .shape = channels,
           .role = VariableRole::kFrozen,
           .fill = Fill::kConstant,
           .constant = factor_},
          {.name = "offset", .shape = channels, .role = VariableRole::kFrozen}};
}

void ScaleLayer::forward(LayerContext& context) const {
  context.kernels.scale_shift(context.stream, context.inputs[0], context.variables[0], context.variables[1],
                              context.output);
}

void ScaleLayer::backward(LayerContext& context) const {
  if (!context.input_gradients[0].defined()) return;
  context.kernels.scale_shift(context.stream, context.output_gradient, context.variables[0], context.variables[1],
                              context.input_gradients[0]);
}

}  // namespace headrace
