#include "headrace/train/net/layers/position_embedding_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// An example is a row: the vectors are its bias.
TensorView one_row_an_example(const TensorView& view) {
  return {view.data, Shape{view.shape[0], view.elements() / view.shape[0]}, view.dtype};
}
TensorView one_row(const TensorView& view) { return {view.data, Shape{view.elements()}, view.dtype}; }

}  // namespace

PositionEmbeddingLayer::PositionEmbeddingLayer(const std::string& name, const Shape& input) : Layer(name, input) {
  if (input.rank() == 2) return;
  throw ConfigError(label(name, "position_embedding") + " needs an input of shape (positions, features), got " +
                        input.to_string(),
                    input.rank() == 1 ? "embedding() makes a sequence from numbers" : "");
}

// They begin as those of embedding() do.
std::vector<VariableSpec> PositionEmbeddingLayer::variables() const {
  return {{.name = "vectors", .shape = shape(), .fill = Fill::kUniform, .constant = 0.05F}};
}

void PositionEmbeddingLayer::forward(LayerContext& context) const {
  context.stream.copy(context.output.data, context.inputs[0].data, context.output.bytes());
  context.kernels.add_bias(context.stream, one_row(context.variables[0]), one_row_an_example(context.output),
                           Activation::kNone);
}

void PositionEmbeddingLayer::backward(LayerContext& context) const {
  const TensorView &dy = context.output_gradient, &dx = context.input_gradients[0];
  context.kernels.conv_backward_weights(context.stream, {}, one_row_an_example(dy), {},
                                        one_row(context.variable_gradients[0]), {});
  if (dx.defined() && dx.data != dy.data) context.stream.copy(dx.data, dy.data, dx.bytes());
}

}  // namespace headrace
