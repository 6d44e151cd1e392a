#include "headrace/train/layers/batch_norm_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// Positions in variables(): the trained ones, then the state. Without scale there is no gamma and all move up.
constexpr std::size_t kBeta = 0, kRunningMean = 1, kRunningVar = 2, kGamma = 3;

}  // namespace

BatchNormLayer::BatchNormLayer(const std::string& name, const Shape& input, const BatchNormLayerOptions& options)
    : Layer(name, input), options_(options) {
  if (input.rank() < 1) {
    throw ConfigError(label(name, "batch_norm") + " needs at least one axis, got " + input.to_string());
  }
}

std::vector<VariableSpec> BatchNormLayer::variables() const {
  const Shape channels{shape().back()};
  std::vector<VariableSpec> specs{
      {.name = "beta", .shape = channels},
      {.name = "running_mean", .shape = channels, .role = VariableRole::kState},
      {.name = "running_var", .shape = channels, .role = VariableRole::kState, .fill = Fill::kConstant}};
  if (options_.scale) specs.push_back({.name = "gamma", .shape = channels, .fill = Fill::kConstant});
  return specs;
}

std::vector<SavedSpec> BatchNormLayer::saved(std::int64_t) const {
  const Shape channels{shape().back()};
  return {{.shape = channels}, {.shape = channels}};
}

Kernels::BatchNorm BatchNormLayer::bind(const LayerContext& context) const {
  Kernels::BatchNorm bound;
  bound.beta = context.variables[kBeta];
  bound.running_mean = context.variables[kRunningMean];
  bound.running_var = context.variables[kRunningVar];
  bound.epsilon = options_.epsilon;
  bound.momentum = options_.momentum;
  if (options_.scale) bound.gamma = context.variables[kGamma];
  if (context.mode == Mode::kTrain) {
    bound.saved_mean = context.saved[0];
    bound.saved_inv_std = context.saved[1];
  }
  return bound;
}

void BatchNormLayer::forward(LayerContext& context) const {
  const Kernels::BatchNorm bound = bind(context);
  if (context.mode == Mode::kTrain) {
    context.kernels.batch_norm_train(context.stream, context.inputs[0], bound, context.scalars, context.output);
  } else {
    context.kernels.batch_norm_infer(context.stream, context.inputs[0], bound, context.output);
  }
}

// The gradient of the first layer's input is nobody's: it goes where the result's was, which is free then.
void BatchNormLayer::backward(LayerContext& context) const {
  const TensorView& wanted = context.input_gradients[0];
  context.kernels.batch_norm_backward(
      context.stream, context.inputs[0], context.output_gradient, bind(context), context.scalars,
      options_.scale ? context.variable_gradients[kGamma] : TensorView{}, context.variable_gradients[kBeta],
      wanted.defined() ? wanted : context.output_gradient);
}

}  // namespace headrace
