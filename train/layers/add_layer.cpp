#include "headrace/train/layers/add_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {

AddLayer::AddLayer(const std::string& name, const Shape& a, const Shape& b) : Layer(name, a) {
  if (!(a == b)) {
    throw ConfigError(label(name, "add") + " needs two inputs of one shape, got " + a.to_string() + " and " +
                      b.to_string());
  }
}

void AddLayer::forward(LayerContext& context) const {
  context.kernels.add(context.stream, context.inputs[0], context.inputs[1], context.output);
}

// Both inputs' gradients are the output's; one of them may lie in its place already.
void AddLayer::backward(LayerContext& context) const {
  for (const TensorView& into : context.input_gradients) {
    if (!into.defined() || into.data == context.output_gradient.data) continue;
    context.stream.copy(into.data, context.output_gradient.data, into.bytes());
  }
}

}  // namespace headrace
