#include "headrace/train/net/layers/layer_norm_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {

LayerNormLayer::LayerNormLayer(const std::string& name, const Shape& input, const LayerNormLayerOptions& options)
    : Layer(name, input), options_(options) {
  if (input.rank() < 1) throw ConfigError(label(name, "layer_norm") + " needs at least one axis, got a number");
  if (options.epsilon > 0) return;
  throw ConfigError(label(name, "layer_norm") + " needs an epsilon above 0, got " +
                    std::to_string(options.epsilon));
}

LayerAttributes LayerNormLayer::attributes() const {
  return {{"epsilon", options_.epsilon}, {"scale", options_.scale}, {"center", options_.center}};
}

std::shared_ptr<const Layer> LayerNormLayer::from(const LayerRecord& record) {
  const LayerNormLayerOptions options{.epsilon = record.attributes.number("epsilon"),
                                      .scale = record.attributes.flag("scale"),
                                      .center = record.attributes.flag("center")};
  return std::make_shared<LayerNormLayer>(record.name, only_input(record), options);
}

std::vector<VariableSpec> LayerNormLayer::variables() const {
  const Shape features{shape().back()};
  std::vector<VariableSpec> specs;
  if (options_.scale) specs.push_back({.name = "gamma", .shape = features, .fill = Fill::kConstant});
  if (options_.center) specs.push_back({.name = "beta", .shape = features});
  return specs;
}

std::vector<SavedSpec> LayerNormLayer::saved(const StepShape& step) const {
  const Shape rows{step.rows * (shape().elements() / shape().back())};
  return {{.shape = rows}, {.shape = rows}};
}

Kernels::LayerNorm LayerNormLayer::norm(const LayerContext& context) const {
  return {.gamma = options_.scale ? context.variables.front() : TensorView{},
          .beta = options_.center ? context.variables.back() : TensorView{},
          .saved_mean = context.saved[0],
          .saved_inv_std = context.saved[1],
          .epsilon = options_.epsilon};
}

void LayerNormLayer::forward(LayerContext& context) const {
  context.kernels.layer_norm_forward(context.stream, as_matrix(context.inputs[0]), norm(context),
                                     as_matrix(context.output));
}

void LayerNormLayer::backward(LayerContext& context) const {
  const TensorView& dx = context.input_gradients[0];
  context.kernels.layer_norm_backward(context.stream, as_matrix(context.inputs[0]),
                                      as_matrix(context.output_gradient), norm(context),
                                      options_.scale ? context.variable_gradients.front() : TensorView{},
                                      options_.center ? context.variable_gradients.back() : TensorView{},
                                      dx.defined() ? as_matrix(dx) : TensorView{});
}

}  // namespace headrace
