#include "headrace/train/net/layers/depthwise_conv_layer.h"

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/conv_geometry.h"

namespace headrace {
namespace {

constexpr const char* kDepthwise = "depthwise_conv";

Shape depthwise_shape(const std::string& name, const Shape& input, const DepthwiseConvLayerOptions& options) {
  const std::string who = label(name, kDepthwise);
  if (options.multiplier < 1) {
    throw ConfigError(who + " needs a multiplier of at least 1, got " + std::to_string(options.multiplier));
  }
  if (options.initializer == Initializer::kDirac) {
    throw ConfigError(who + " cannot begin as an identity", "use another initializer");
  }
  const int channels = input.rank() == 3 ? static_cast<int>(input[2]) : 1;
  return convolved_shape(who, input, channels * options.multiplier, window_of(options));
}

}  // namespace

DepthwiseConvLayer::DepthwiseConvLayer(const std::string& name, const Shape& input,
                                       const DepthwiseConvLayerOptions& options)
    : Layer(name, depthwise_shape(name, input, options)), input_(input), options_(options) {}

LayerAttributes DepthwiseConvLayer::attributes() const {
  LayerAttributes all{{"kernel", to_attribute(options_.kernel)},
                      {"stride", to_attribute(options_.stride)},
                      {"padding", to_text(options_.padding)},
                      {"multiplier", options_.multiplier},
                      {"bias", options_.bias},
                      {"trained_weights", options_.trained_weights},
                      {"initializer", to_text(options_.initializer)}};
  add_window(all, window_of(options_));
  return all;
}

std::shared_ptr<const Layer> DepthwiseConvLayer::from(const LayerRecord& record) {
  const LayerAttributes& given = record.attributes;
  const ConvWindow window = window_from(record, kDepthwise);
  const DepthwiseConvLayerOptions options{.kernel = window.kernel,
                                          .stride = window.stride,
                                          .dilation = window.dilation,
                                          .padding = window.padding,
                                          .pixels = window.pixels,
                                          .multiplier = given.whole("multiplier"),
                                          .bias = given.flag("bias"),
                                          .trained_weights = given.flag("trained_weights"),
                                          .initializer = initializer_of(record)};
  return std::make_shared<DepthwiseConvLayer>(record.name, only_input(record), options);
}

// For Initializer::kFanInUniform, PyTorch's, one channel comes in; for those of Keras, as there, all do.
std::vector<VariableSpec> DepthwiseConvLayer::variables() const {
  const std::int64_t high = options_.kernel.height, wide = options_.kernel.width;
  const std::int64_t channels = options_.initializer == Initializer::kFanInUniform ? 1 : input_[2];
  std::vector<VariableSpec> specs{
      {.name = "weights",
       .shape = Shape{shape()[2], high, wide, 1},
       .role = options_.trained_weights ? VariableRole::kTrained : VariableRole::kFrozen,
       .fill = to_fill(options_.initializer),
       .fan_in = high * wide * channels,
       .fan_out = high * wide * options_.multiplier}};
  if (options_.bias) specs.push_back({.name = "bias", .shape = Shape{shape()[2]}});
  return specs;
}

ConvOptions DepthwiseConvLayer::geometry() const {
  return conv_options(input_, window_of(options_), Precision::kF32);
}

void DepthwiseConvLayer::forward(LayerContext& context) const {
  context.kernels.depthwise_forward(context.stream, context.inputs[0], context.variables[0],
                                    options_.bias ? context.variables[1] : TensorView{}, context.output,
                                    geometry(), context.epilogue);
}

void DepthwiseConvLayer::backward(LayerContext& context) const {
  const TensorView& dweights = context.variable_gradients[0];
  const TensorView dbias = options_.bias ? context.variable_gradients[1] : TensorView{};
  if (dweights.defined() || dbias.defined()) {
    context.kernels.depthwise_backward_weights(context.variables_stream(), context.inputs[0],
                                               context.output_gradient, dweights, dbias, geometry());
  }
  if (context.input_gradients[0].defined()) {
    context.kernels.depthwise_backward_data(context.stream, context.output_gradient, context.variables[0],
                                            context.input_gradients[0], geometry());
  }
}

}  // namespace headrace
