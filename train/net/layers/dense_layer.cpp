#include "headrace/train/net/layers/dense_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

Shape dense_result_shape(const std::string& name, const Shape& input, int units) {
  if (input.rank() < 1) {
    throw ConfigError(label(name, "dense") + " needs at least one axis, got " + input.to_string());
  }
  if (units < 1)
    throw ConfigError(label(name, "dense") + " needs at least one unit, got " + std::to_string(units));
  std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end());
  extents.back() = units;
  return Shape(extents);
}

}  // namespace

DenseLayer::DenseLayer(const std::string& name, const Shape& input, int units, const DenseLayerOptions& options)
    : Layer(name, dense_result_shape(name, input, units)),
      features_(input.back()),
      units_(units),
      options_(options) {}

LayerAttributes DenseLayer::attributes() const {
  return {{"units", units_}, {"bias", options_.bias}, {"initializer", to_text(options_.initializer)}};
}

std::shared_ptr<const Layer> DenseLayer::from(const LayerRecord& record) {
  const DenseLayerOptions options{.bias = record.attributes.flag("bias"), .initializer = initializer_of(record)};
  return std::make_shared<DenseLayer>(record.name, only_input(record), record.attributes.whole("units"), options);
}

std::vector<VariableSpec> DenseLayer::variables() const {
  std::vector<VariableSpec> specs{{.name = "weights",
                                   .shape = Shape{units_, features_},
                                   .fill = to_fill(options_.initializer),
                                   .fan_in = features_,
                                   .fan_out = units_,
                                   .product_weights = true}};
  if (options_.bias) specs.push_back({.name = "bias", .shape = Shape{units_}});
  return specs;
}

void DenseLayer::forward(LayerContext& context) const {
  context.kernels.dense_forward(context.stream, as_matrix(context.inputs[0]), context.variables[0],
                                options_.bias ? context.variables[1] : TensorView{}, as_matrix(context.output),
                                context.epilogue, context.precision);
}

void DenseLayer::backward(LayerContext& context) const {
  const TensorView dy = as_matrix(context.output_gradient);
  context.kernels.dense_backward_weights(
      context.variables_stream(), as_matrix(context.inputs[0]), dy, context.variable_gradients[0],
      options_.bias ? context.variable_gradients[1] : TensorView{}, context.precision);
  if (context.input_gradients[0].defined()) {
    context.kernels.dense_backward_data(context.stream, dy, context.variables[0],
                                        as_matrix(context.input_gradients[0]), context.precision);
  }
}

}  // namespace headrace
