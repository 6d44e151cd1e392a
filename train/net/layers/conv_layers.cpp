// Two-dimensional convolutions over (H, W, C), their transposes, and those of each channel separately.
#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/conv_geometry.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

template <typename Options>
VariableRole role_of_weights(const Options& options) {
  return options.trained_weights ? VariableRole::kTrained : VariableRole::kFrozen;
}

// Adds a bias for each channel if there is one.
template <typename Options>
std::vector<VariableSpec> with_bias(VariableSpec weights, const Options& options, std::int64_t channels) {
  std::vector<VariableSpec> specs{std::move(weights)};
  if (options.bias) specs.push_back({.name = "bias", .shape = Shape{channels}});
  return specs;
}

Shape conv_shape(const std::string& name, const Shape& input, const ConvLayerOptions& options) {
  const std::string who = label(name, options.kKind);
  if (options.groups > 1 && options.initializer == Initializer::kDirac) {
    throw ConfigError(who + " of several groups cannot begin as an identity", "use another initializer");
  }
  return convolved_shape(who, input, options.filters, window_of(options));
}

class ConvLayer final : public OptionLayer<ConvLayerOptions> {
 public:
  ConvLayer(const std::string& name, const Shape& input, const ConvLayerOptions& options)
      : OptionLayer(name, conv_shape(name, input, options), options), input_(input) {}

  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .variables_beside = true};
  }
  bool recomputes(const Kernels& kernels, DType activations, Precision precision) const override;
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  ConvOptions geometry(Precision precision) const { return conv_options(input_, window_of(options_), precision); }

  Shape input_;
};

std::vector<VariableSpec> ConvLayer::variables() const {
  const std::int64_t high = options_.kernel.height, wide = options_.kernel.width;
  const std::int64_t channels = input_[2] / options_.groups;
  return with_bias({.name = "weights",
                    .shape = Shape{shape()[2], high, wide, channels},
                    .role = role_of_weights(options_),
                    .fill = to_fill(options_.initializer),
                    .fan_in = high * wide * channels,
                    .fan_out = high * wide * shape()[2],
                    .product_weights = true},
                   options_, shape()[2]);
}

// The weights' gradient needs the gradient of the activation's input as a tensor; the bias's is a sum of it.
bool ConvLayer::recomputes(const Kernels& kernels, DType activations, Precision precision) const {
  return !options_.trained_weights &&
         kernels.recomputes_activation(activations, variables().front().shape, geometry(precision));
}

void ConvLayer::forward(LayerContext& context) const {
  context.kernels.conv_forward(context.stream, {context.inputs[0], context.variables[0],
                                                options_.bias ? context.variables[1] : TensorView{},
                                                context.output, geometry(context.precision), context.epilogue});
}

void ConvLayer::backward(LayerContext& context) const {
  const ConvOptions options = geometry(context.precision);
  const TensorView dbias = options_.bias ? context.variable_gradients[1] : TensorView{};
  if (context.undoes_epilogue) {
    if (!dbias.defined()) return;
    return context.kernels.conv_bias_backward(context.variables_stream(),
                                              {context.inputs[0], context.variables[0], context.variables[1],
                                               context.output_gradient, dbias, options, context.epilogue});
  }
  if (options_.trained_weights || dbias.defined()) {
    context.kernels.conv_backward_weights(
        context.variables_stream(),
        {context.inputs[0], context.output_gradient, context.variable_gradients[0], dbias, options});
  }
  if (context.input_gradients[0].defined()) {
    context.kernels.conv_backward_data(
        context.stream, {context.output_gradient, context.variables[0], context.input_gradients[0], options});
  }
}

Shape enlarged_shape(const std::string& name, const Shape& input, const ConvTransposeLayerOptions& options) {
  const std::string who = label(name, options.kKind);
  if (options.initializer == Initializer::kDirac) {
    throw ConfigError(who + " has no filters that pass a channel through", "use another initializer");
  }
  return transposed_shape(who, input, options.filters, window_of(options), options.output_padding);
}

// The weights (C, KH, KW, filters / groups) are those of the convolution from the result to the input.
class ConvTransposeLayer final : public OptionLayer<ConvTransposeLayerOptions> {
 public:
  ConvTransposeLayer(const std::string& name, const Shape& input, const ConvTransposeLayerOptions& options)
      : OptionLayer(name, enlarged_shape(name, input, options), options), input_(input) {}

  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .variables_beside = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  // Returns that of the convolution from the result to the input.
  ConvOptions geometry(Precision precision) const {
    return transposed_options(input_, shape(), window_of(options_), precision);
  }

  Shape input_;
};

// As in Keras and PyTorch, the fan-in counts the channels of the result.
std::vector<VariableSpec> ConvTransposeLayer::variables() const {
  const std::int64_t high = options_.kernel.height, wide = options_.kernel.width;
  const std::int64_t filters = shape()[2] / options_.groups;
  return with_bias({.name = "weights",
                    .shape = Shape{input_[2], high, wide, filters},
                    .role = role_of_weights(options_),
                    .fill = to_fill(options_.initializer),
                    .fan_in = high * wide * filters,
                    .fan_out = high * wide * input_[2],
                    .product_weights = true},
                   options_, shape()[2]);
}

void ConvTransposeLayer::forward(LayerContext& context) const {
  context.kernels.conv_backward_data(
      context.stream, {context.inputs[0], context.variables[0], context.output, geometry(context.precision)});
  if (!options_.bias && context.epilogue == Activation::kNone) return;
  context.kernels.add_bias(
      context.stream, {options_.bias ? context.variables[1] : TensorView{}, context.output, context.epilogue});
}

void ConvTransposeLayer::backward(LayerContext& context) const {
  const ConvOptions options = geometry(context.precision);
  const TensorView &x = context.inputs[0], &dy = context.output_gradient;
  Stream& beside = context.variables_stream();
  if (context.variable_gradients[0].defined()) {
    context.kernels.conv_backward_weights(beside, {dy, x, context.variable_gradients[0], {}, options});
  }
  if (options_.bias && context.variable_gradients[1].defined()) {
    context.kernels.conv_backward_weights(beside, {{}, dy, {}, context.variable_gradients[1], options});
  }
  if (context.input_gradients[0].defined()) {
    context.kernels.conv_forward(
        context.stream, {dy, context.variables[0], {}, context.input_gradients[0], options, Activation::kNone});
  }
}

Shape depthwise_shape(const std::string& name, const Shape& input, const DepthwiseConvLayerOptions& options) {
  const std::string who = label(name, options.kKind);
  if (options.multiplier < 1) {
    throw ConfigError(who + " needs a multiplier of at least 1, got " + std::to_string(options.multiplier));
  }
  if (options.initializer == Initializer::kDirac) {
    throw ConfigError(who + " cannot begin as an identity", "use another initializer");
  }
  const int channels = input.rank() == 3 ? static_cast<int>(input[2]) : 1;
  return convolved_shape(who, input, channels * options.multiplier, window_of(options));
}

// The weights are (C multiplier, KH, KW, 1).
class DepthwiseConvLayer final : public OptionLayer<DepthwiseConvLayerOptions> {
 public:
  DepthwiseConvLayer(const std::string& name, const Shape& input, const DepthwiseConvLayerOptions& options)
      : OptionLayer(name, depthwise_shape(name, input, options), options), input_(input) {}

  std::vector<VariableSpec> variables() const override;
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .variables_beside = true};
  }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  ConvOptions geometry() const { return conv_options(input_, window_of(options_), Precision::kF32); }

  Shape input_;
};

// For Initializer::kFanInUniform, PyTorch's, the fan-in counts one channel; for Keras's initializers, as there,
// all.
std::vector<VariableSpec> DepthwiseConvLayer::variables() const {
  const std::int64_t high = options_.kernel.height, wide = options_.kernel.width;
  const std::int64_t channels = options_.initializer == Initializer::kFanInUniform ? 1 : input_[2];
  return with_bias({.name = "weights",
                    .shape = Shape{shape()[2], high, wide, 1},
                    .role = role_of_weights(options_),
                    .fill = to_fill(options_.initializer),
                    .fan_in = high * wide * channels,
                    .fan_out = high * wide * options_.multiplier},
                   options_, shape()[2]);
}

void DepthwiseConvLayer::forward(LayerContext& context) const {
  context.kernels.depthwise_forward(context.stream, {context.inputs[0], context.variables[0],
                                                     options_.bias ? context.variables[1] : TensorView{},
                                                     context.output, geometry(), context.epilogue});
}

void DepthwiseConvLayer::backward(LayerContext& context) const {
  const TensorView& dweights = context.variable_gradients[0];
  const TensorView dbias = options_.bias ? context.variable_gradients[1] : TensorView{};
  if (dweights.defined() || dbias.defined()) {
    context.kernels.depthwise_backward_weights(
        context.variables_stream(), {context.inputs[0], context.output_gradient, dweights, dbias, geometry()});
  }
  if (context.input_gradients[0].defined()) {
    context.kernels.depthwise_backward_data(
        context.stream, {context.output_gradient, context.variables[0], context.input_gradients[0], geometry()});
  }
}

}  // namespace

LayerKind conv_layer() { return kind_of_layer<ConvLayer>(); }
LayerKind conv_transpose_layer() { return kind_of_layer<ConvTransposeLayer>(); }
LayerKind depthwise_conv_layer() { return kind_of_layer<DepthwiseConvLayer>(); }

}  // namespace headrace
