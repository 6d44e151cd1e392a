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

LayerAttributes BatchNormLayer::attributes() const {
  return {{"momentum", options_.momentum}, {"epsilon", options_.epsilon}, {"scale", options_.scale}};
}

std::shared_ptr<const Layer> BatchNormLayer::from(const LayerRecord& record) {
  const LayerAttributes& given = record.attributes;
  const BatchNormLayerOptions options{
      .momentum = given.number("momentum"), .epsilon = given.number("epsilon"), .scale = given.flag("scale")};
  return std::make_shared<BatchNormLayer>(record.name, only_input(record), options);
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

LayerTraits BatchNormLayer::traits(Mode mode) const {
  return {.backward_in_place = true,
          .backward_reads_input = true,
          .takes_epilogue = true,
          .undoes_epilogue = true,
          .takes_pooling = mode == Mode::kTrain};
}

Kernels::BatchNorm BatchNormLayer::bind(const LayerContext& context) const {
  Kernels::BatchNorm bound;
  bound.beta = context.variables[kBeta];
  bound.running_mean = context.variables[kRunningMean];
  bound.running_var = context.variables[kRunningVar];
  bound.epsilon = options_.epsilon;
  bound.momentum = options_.momentum;
  bound.activation = context.epilogue;
  if (options_.scale) bound.gamma = context.variables[kGamma];
  if (context.mode == Mode::kTrain) {
    bound.saved_mean = context.saved[0];
    bound.saved_inv_std = context.saved[1];
  }
  return bound;
}

void BatchNormLayer::forward(LayerContext& context) const {
  const Kernels::BatchNorm bound = bind(context);
  const TensorView& input = context.inputs[0];
  if (context.prologue) {
    context.kernels.max_pool_batch_norm_train(context.stream, context.prologue->x, context.prologue->pool, input,
                                              bound, context.scalars, context.output);
  } else if (context.mode == Mode::kTrain) {
    context.kernels.batch_norm_train(context.stream, input, bound, context.scalars, context.output);
  } else {
    context.kernels.batch_norm_infer(context.stream, input, bound, context.output);
  }
}

// No layer takes the gradient of the first layer's input: it goes where the result's was, which is free then.
void BatchNormLayer::backward(LayerContext& context) const {
  const TensorView dgamma = options_.scale ? context.variable_gradients[kGamma] : TensorView{};
  const TensorView& dbeta = context.variable_gradients[kBeta];
  if (context.prologue && context.prologue->x_gradient.defined()) {
    context.kernels.max_pool_batch_norm_backward(context.stream, context.inputs[0], context.output_gradient,
                                                 bind(context), context.scalars, dgamma, dbeta,
                                                 context.prologue->pool, context.prologue->x_gradient);
    return;
  }
  const TensorView& wanted = context.input_gradients[0];
  context.kernels.batch_norm_backward(context.stream, context.inputs[0], context.output_gradient, bind(context),
                                      context.scalars, dgamma, dbeta,
                                      wanted.defined() ? wanted : context.output_gradient);
}

}  // namespace headrace
