#include "headrace/train/net/layers/add_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {

namespace {

Shape sum_shape(const std::string& name, const std::vector<Shape>& inputs) {
  if (inputs.size() < 2) {
    throw ConfigError(label(name, "add") + " needs at least two inputs, got " + std::to_string(inputs.size()));
  }
  for (const Shape& shape : inputs) {
    if (shape == inputs.front()) continue;
    throw ConfigError(label(name, "add") + " needs inputs of one shape, got " + inputs.front().to_string() +
                      " and " + shape.to_string());
  }
  return inputs.front();
}

}  // namespace

AddLayer::AddLayer(const std::string& name, const std::vector<Shape>& inputs)
    : Layer(name, sum_shape(name, inputs)) {}

std::shared_ptr<const Layer> AddLayer::from(const LayerRecord& record) {
  return std::make_shared<AddLayer>(record.name, record.inputs);
}

void AddLayer::forward(LayerContext& context) const {
  context.kernels.add(context.stream, context.inputs[0], context.inputs[1], context.output);
  for (std::size_t i = 2; i < context.inputs.size(); ++i) {
    context.kernels.accumulate(context.stream, context.inputs[i], context.output);
  }
}

// Each input's gradient is the output's; one of them may lie in its place already.
void AddLayer::backward(LayerContext& context) const {
  for (const TensorView& into : context.input_gradients) {
    if (!into.defined() || into.data == context.output_gradient.data) continue;
    context.stream.copy(into.data, context.output_gradient.data, into.bytes());
  }
}

}  // namespace headrace
