// Normalisation of channels over a batch and of each example's last axis.
#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

// Positions in variables(): the trained ones, then the state. Without scale there is no gamma and all move up.
constexpr std::size_t kBeta = 0, kRunningMean = 1, kRunningVar = 2, kGamma = 3;
// Positions in saved(): the statistics and, if they are synchronised, those of each replica, what is computed from
// all, and the sums of gradients of this replica and of all.
constexpr std::size_t kMean = 0, kInverse = 1, kOfReplicas = 2, kVariance = 3, kCounts = 4, kOwn = 5, kJoint = 6;

// As epsilon, makes the saved inverse deviation that of the variance alone.
constexpr float kAlmostZero = 1e-30F;

TensorView slice_of(const TensorView& of, std::int64_t begin, std::int64_t elements) {
  return {of.as<float>() + begin, Shape{elements}, DType::kF32};
}

// Takes the activation after it and, in training, the max pooling before it into its own pass.
class BatchNormLayer final : public OptionLayer<BatchNormLayerOptions> {
 public:
  BatchNormLayer(const std::string& name, const Shape& input, const BatchNormLayerOptions& options)
      : OptionLayer(name, input, options) {
    if (input.rank() >= 1) return;
    throw ConfigError(label(name, "batch_norm") + " needs at least one axis, got " + input.to_string());
  }

  std::vector<VariableSpec> variables() const override;
  std::vector<SavedSpec> saved(const StepShape& step) const override;
  LayerTraits traits(Mode mode) const override;
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  kernel::BatchNorm bind(const LayerContext& context) const;
  void forward_over_replicas(LayerContext& context) const;
  void backward_over_replicas(LayerContext& context) const;
};

std::vector<VariableSpec> BatchNormLayer::variables() const {
  const Shape channels{shape().back()};
  std::vector<VariableSpec> specs{
      {.name = "beta", .shape = channels},
      {.name = "running_mean", .shape = channels, .role = VariableRole::kState},
      {.name = "running_var", .shape = channels, .role = VariableRole::kState, .fill = Fill::kConstant}};
  if (options_.scale) specs.push_back({.name = "gamma", .shape = channels, .fill = Fill::kConstant});
  return specs;
}

std::vector<SavedSpec> BatchNormLayer::saved(const StepShape& step) const {
  const std::int64_t channels = shape().back();
  std::vector<SavedSpec> specs{{.shape = Shape{channels}}, {.shape = Shape{channels}}};
  if (!options_.synchronised || step.world_replicas == 1) return specs;
  specs.push_back({.shape = Shape{step.world_replicas, 1 + 2 * channels}});
  specs.push_back({.shape = Shape{channels}});
  specs.push_back({.shape = Shape{2}});
  specs.push_back({.shape = Shape{2, channels}});
  specs.push_back({.shape = Shape{2, channels}});
  return specs;
}

LayerTraits BatchNormLayer::traits(Mode mode) const {
  return {.backward_in_place = true,
          .backward_reads_input = true,
          .takes_epilogue = true,
          .undoes_epilogue = true,
          .takes_pooling = mode == Mode::kTrain && !options_.synchronised,
          .over_replicas = mode == Mode::kTrain && options_.synchronised};
}

kernel::BatchNorm BatchNormLayer::bind(const LayerContext& context) const {
  kernel::BatchNorm bound;
  bound.beta = context.variables[kBeta];
  bound.running_mean = context.variables[kRunningMean];
  bound.running_var = context.variables[kRunningVar];
  bound.epsilon = options_.epsilon;
  bound.momentum = options_.momentum;
  bound.activation = context.epilogue;
  if (options_.scale) bound.gamma = context.variables[kGamma];
  if (context.mode == Mode::kTrain) {
    bound.saved_mean = context.saved[kMean];
    bound.saved_inv_std = context.saved[kInverse];
  }
  return bound;
}

void BatchNormLayer::forward(LayerContext& context) const {
  const bool training = context.mode == Mode::kTrain;
  if (options_.synchronised && training && context.group != nullptr) return forward_over_replicas(context);
  const kernel::BatchNorm bound = bind(context);
  const TensorView& input = context.inputs[0];
  if (context.prologue) {
    context.kernels.max_pool_batch_norm_train(context.stream, {context.prologue->x, input, context.output,
                                                               context.prologue->pool, bound, context.scalars});
  } else if (context.mode == Mode::kTrain) {
    context.kernels.batch_norm_train(context.stream, {input, context.output, bound, context.scalars});
  } else {
    context.kernels.batch_norm_infer(context.stream, {input, context.output, bound});
  }
}

// Writes this replica's statistics to its row among zeros: the sum over replicas then holds the rows of all. The
// result made with its own statistics is overwritten by that made with all replicas'.
void BatchNormLayer::forward_over_replicas(LayerContext& context) const {
  const TensorView &x = context.inputs[0], &all = context.saved[kOfReplicas];
  const std::int64_t width = all.shape[1];
  kernel::BatchNorm own = bind(context);
  own.epsilon = kAlmostZero;
  own.momentum = 1;
  own.activation = Activation::kNone;
  context.kernels.batch_norm_train(context.stream, {x, context.output, own, context.scalars});
  context.stream.fill(all.data, 0, all.bytes());
  context.kernels.pack_statistics(context.stream,
                                  {x, slice_of(all, context.group->replica * width, width), own, context.scalars});
  context.group->sum(all);
  kernel::BatchNorm joint = bind(context);
  context.kernels.join_statistics(
      context.stream, {all, context.saved[kVariance], context.saved[kCounts], joint, context.group->replica});
  joint.running_mean = joint.saved_mean;
  joint.running_var = context.saved[kVariance];
  context.kernels.batch_norm_infer(context.stream, {x, context.output, joint});
}

void BatchNormLayer::backward_over_replicas(LayerContext& context) const {
  const std::int64_t channels = shape().back();
  const TensorView &x = context.inputs[0], &own = context.saved[kOwn], &joint = context.saved[kJoint];
  const TensorView dbeta = slice_of(own, 0, channels), dgamma = slice_of(own, channels, channels);
  const TensorView& wanted = context.input_gradients[0];
  const TensorView& dx = wanted.defined() ? wanted : context.output_gradient;
  context.kernels.batch_norm_backward(
      context.stream, {x, context.output_gradient, dgamma, dbeta, dx, bind(context), context.scalars});
  context.stream.copy(context.variable_gradients[kBeta].data, dbeta.data, dbeta.bytes());
  if (options_.scale) context.stream.copy(context.variable_gradients[kGamma].data, dgamma.data, dgamma.bytes());
  if (!wanted.defined()) return;
  context.stream.copy(joint.data, own.data, own.bytes());
  context.group->sum(joint);
  context.kernels.join_input_gradient(context.stream,
                                      {x, own, joint, context.saved[kCounts], dx, bind(context), context.scalars});
}

// No layer takes the gradient of the first layer's input: it is written over the result's gradient, free by then.
void BatchNormLayer::backward(LayerContext& context) const {
  if (options_.synchronised && context.group != nullptr) return backward_over_replicas(context);
  const TensorView dgamma = options_.scale ? context.variable_gradients[kGamma] : TensorView{};
  const TensorView& dbeta = context.variable_gradients[kBeta];
  if (context.prologue && context.prologue->x_gradient.defined()) {
    context.kernels.max_pool_batch_norm_backward(
        context.stream, {context.inputs[0], context.output_gradient, dgamma, dbeta, context.prologue->x_gradient,
                         context.prologue->pool, bind(context), context.scalars});
    return;
  }
  const TensorView& wanted = context.input_gradients[0];
  context.kernels.batch_norm_backward(
      context.stream, {context.inputs[0], context.output_gradient, dgamma, dbeta,
                       wanted.defined() ? wanted : context.output_gradient, bind(context), context.scalars});
}

class LayerNormLayer final : public OptionLayer<LayerNormLayerOptions> {
 public:
  LayerNormLayer(const std::string& name, const Shape& input, const LayerNormLayerOptions& options)
      : OptionLayer(name, input, options) {
    if (input.rank() < 1) throw ConfigError(label(name, "layer_norm") + " needs at least one axis, got a number");
    if (options.epsilon > 0) return;
    throw ConfigError(label(name, "layer_norm") + " needs an epsilon above 0, got " +
                      std::to_string(options.epsilon));
  }

  std::vector<VariableSpec> variables() const override;
  std::vector<SavedSpec> saved(const StepShape& step) const override;
  LayerTraits traits(Mode) const override {
    return {.backward_in_place = true, .backward_reads_input = true, .f32 = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  kernel::LayerNorm norm(const LayerContext& context) const;
};

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

kernel::LayerNorm LayerNormLayer::norm(const LayerContext& context) const {
  return {.gamma = options_.scale ? context.variables.front() : TensorView{},
          .beta = options_.center ? context.variables.back() : TensorView{},
          .saved_mean = context.saved[0],
          .saved_inv_std = context.saved[1],
          .epsilon = options_.epsilon};
}

void LayerNormLayer::forward(LayerContext& context) const {
  context.kernels.layer_norm_forward(context.stream,
                                     {as_matrix(context.inputs[0]), as_matrix(context.output), norm(context)});
}

void LayerNormLayer::backward(LayerContext& context) const {
  const TensorView& dx = context.input_gradients[0];
  context.kernels.layer_norm_backward(context.stream,
                                      {as_matrix(context.inputs[0]), as_matrix(context.output_gradient),
                                       options_.scale ? context.variable_gradients.front() : TensorView{},
                                       options_.center ? context.variable_gradients.back() : TensorView{},
                                       dx.defined() ? as_matrix(dx) : TensorView{}, norm(context)});
}

}  // namespace

LayerKind batch_norm_layer() { return kind_of_layer<BatchNormLayer>(); }
LayerKind layer_norm_layer() { return kind_of_layer<LayerNormLayer>(); }

}  // namespace headrace
