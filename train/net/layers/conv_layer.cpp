#include "headrace/train/net/layers/conv_layer.h"

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/conv_geometry.h"

namespace headrace {
namespace {

constexpr const char* kConv = "conv";

Shape result_shape(const std::string& name, const Shape& input, int filters, const ConvLayerOptions& options) {
  const std::string who = label(name, kConv);
  if (options.groups > 1 && options.initializer == Initializer::kDirac) {
    throw ConfigError(who + " of several groups cannot begin as an identity", "use another initializer");
  }
  return convolved_shape(who, input, filters, window_of(options));
}

}  // namespace

LayerAttributes ConvLayer::attributes() const {
  LayerAttributes all{{"filters", shape()[2]},
                      {"kernel", to_attribute(options_.kernel)},
                      {"stride", to_attribute(options_.stride)},
                      {"padding", to_text(options_.padding)},
                      {"bias", options_.bias},
                      {"trained_weights", options_.trained_weights},
                      {"initializer", to_text(options_.initializer)}};
  add_window(all, window_of(options_));
  return all;
}

std::shared_ptr<const Layer> ConvLayer::from(const LayerRecord& record) {
  const LayerAttributes& given = record.attributes;
  const ConvWindow window = window_from(record, kConv);
  const ConvLayerOptions options{.kernel = window.kernel,
                                 .stride = window.stride,
                                 .dilation = window.dilation,
                                 .padding = window.padding,
                                 .pixels = window.pixels,
                                 .groups = window.groups,
                                 .bias = given.flag("bias"),
                                 .trained_weights = given.flag("trained_weights"),
                                 .initializer = initializer_of(record)};
  return std::make_shared<ConvLayer>(record.name, only_input(record), given.whole("filters"), options);
}

ConvLayer::ConvLayer(const std::string& name, const Shape& input, int filters, const ConvLayerOptions& options)
    : Layer(name, result_shape(name, input, filters, options)), input_(input), options_(options) {}

std::vector<VariableSpec> ConvLayer::variables() const {
  const std::int64_t high = options_.kernel.height, wide = options_.kernel.width;
  const std::int64_t channels = input_[2] / options_.groups;
  std::vector<VariableSpec> specs{
      {.name = "weights",
       .shape = Shape{shape()[2], high, wide, channels},
       .role = options_.trained_weights ? VariableRole::kTrained : VariableRole::kFrozen,
       .fill = to_fill(options_.initializer),
       .fan_in = high * wide * channels,
       .fan_out = high * wide * shape()[2],
       .product_weights = true}};
  if (options_.bias) specs.push_back({.name = "bias", .shape = Shape{shape()[2]}});
  return specs;
}

ConvOptions ConvLayer::geometry(Precision precision) const {
  return conv_options(input_, window_of(options_), precision);
}

// The weights' gradient needs the gradient of the activation's input as a tensor; the bias's is a sum of it.
bool ConvLayer::recomputes(const Kernels& kernels, DType activations, Precision precision) const {
  return !options_.trained_weights &&
         kernels.recomputes_activation(activations, variables().front().shape, geometry(precision));
}

void ConvLayer::forward(LayerContext& context) const {
  context.kernels.conv_forward(context.stream, context.inputs[0], context.variables[0],
                               options_.bias ? context.variables[1] : TensorView{}, context.output,
                               geometry(context.precision), context.epilogue);
}

void ConvLayer::backward(LayerContext& context) const {
  const ConvOptions options = geometry(context.precision);
  const TensorView dbias = options_.bias ? context.variable_gradients[1] : TensorView{};
  if (context.undoes_epilogue) {
    if (!dbias.defined()) return;
    return context.kernels.conv_bias_backward(context.variables_stream(), context.inputs[0], context.variables[0],
                                              context.variables[1], context.output_gradient, dbias, options,
                                              context.epilogue);
  }
  if (options_.trained_weights || dbias.defined()) {
    context.kernels.conv_backward_weights(context.variables_stream(), context.inputs[0], context.output_gradient,
                                          context.variable_gradients[0], dbias, options);
  }
  if (context.input_gradients[0].defined()) {
    context.kernels.conv_backward_data(context.stream, context.output_gradient, context.variables[0],
                                       context.input_gradients[0], options);
  }
}

}  // namespace headrace
