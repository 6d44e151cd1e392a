#include "headrace/train/net/layers/conv_transpose_layer.h"

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/conv_geometry.h"

namespace headrace {
namespace {

constexpr const char* kKind = "conv_transpose";

Shape enlarged_shape(const std::string& name, const Shape& input, int filters,
                     const ConvTransposeLayerOptions& options) {
  const std::string who = label(name, kKind);
  if (options.initializer == Initializer::kDirac) {
    throw ConfigError(who + " has no filters that pass a channel through", "use another initializer");
  }
  return transposed_shape(who, input, filters, window_of(options), options.output_padding);
}

}  // namespace

ConvTransposeLayer::ConvTransposeLayer(const std::string& name, const Shape& input, int filters,
                                       const ConvTransposeLayerOptions& options)
    : Layer(name, enlarged_shape(name, input, filters, options)), input_(input), options_(options) {}

LayerAttributes ConvTransposeLayer::attributes() const {
  LayerAttributes all{{"filters", shape()[2]},
                      {"kernel", to_attribute(options_.kernel)},
                      {"stride", to_attribute(options_.stride)},
                      {"padding", to_text(options_.padding)},
                      {"bias", options_.bias},
                      {"trained_weights", options_.trained_weights},
                      {"initializer", to_text(options_.initializer)}};
  add_window(all, window_of(options_));
  if (options_.output_padding) all.add("output_padding", to_attribute(*options_.output_padding));
  return all;
}

std::shared_ptr<const Layer> ConvTransposeLayer::from(const LayerRecord& record) {
  const LayerAttributes& given = record.attributes;
  const ConvWindow window = window_from(record, kKind);
  std::optional<HeightWidth> output_padding;
  if (given.has("output_padding")) output_padding = given.height_width("output_padding");
  const ConvTransposeLayerOptions options{.kernel = window.kernel,
                                          .stride = window.stride,
                                          .dilation = window.dilation,
                                          .padding = window.padding,
                                          .pixels = window.pixels,
                                          .output_padding = output_padding,
                                          .groups = window.groups,
                                          .bias = given.flag("bias"),
                                          .trained_weights = given.flag("trained_weights"),
                                          .initializer = initializer_of(record)};
  return std::make_shared<ConvTransposeLayer>(record.name, only_input(record), given.whole("filters"), options);
}

// Fans are Keras's and PyTorch's, which take the result's channels for those that come in.
std::vector<VariableSpec> ConvTransposeLayer::variables() const {
  const std::int64_t high = options_.kernel.height, wide = options_.kernel.width;
  const std::int64_t filters = shape()[2] / options_.groups;
  std::vector<VariableSpec> specs{
      {.name = "weights",
       .shape = Shape{input_[2], high, wide, filters},
       .role = options_.trained_weights ? VariableRole::kTrained : VariableRole::kFrozen,
       .fill = to_fill(options_.initializer),
       .fan_in = high * wide * filters,
       .fan_out = high * wide * input_[2],
       .product_weights = true}};
  if (options_.bias) specs.push_back({.name = "bias", .shape = Shape{shape()[2]}});
  return specs;
}

ConvOptions ConvTransposeLayer::geometry(Precision precision) const {
  return transposed_options(input_, shape(), window_of(options_), precision);
}

void ConvTransposeLayer::forward(LayerContext& context) const {
  context.kernels.conv_backward_data(context.stream, context.inputs[0], context.variables[0], context.output,
                                     geometry(context.precision));
  if (!options_.bias && context.epilogue == Activation::kNone) return;
  context.kernels.add_bias(context.stream, options_.bias ? context.variables[1] : TensorView{}, context.output,
                           context.epilogue);
}

void ConvTransposeLayer::backward(LayerContext& context) const {
  const ConvOptions options = geometry(context.precision);
  const TensorView &x = context.inputs[0], &dy = context.output_gradient;
  Stream& beside = context.variables_stream();
  if (context.variable_gradients[0].defined()) {
    context.kernels.conv_backward_weights(beside, dy, x, context.variable_gradients[0], {}, options);
  }
  if (options_.bias && context.variable_gradients[1].defined()) {
    context.kernels.conv_backward_weights(beside, {}, dy, {}, context.variable_gradients[1], options);
  }
  if (context.input_gradients[0].defined()) {
    context.kernels.conv_forward(context.stream, dy, context.variables[0], {}, context.input_gradients[0], options,
                                 Activation::kNone);
  }
}

}  // namespace headrace
