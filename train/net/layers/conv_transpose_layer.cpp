#include "headrace/train/net/layers/conv_transpose_layer.h"

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/conv_geometry.h"

namespace headrace {
namespace {

constexpr const char* kKind = "conv_transpose";

ConvWindow transposed_window(const ConvLayerOptions& options) {
  return {.kernel = options.kernel, .stride = options.stride, .padding = options.padding};
}

// Returns stride times the extents, of which the convolution gives the input again; without padding also what the
// last window reaches beyond.
Shape enlarged_shape(const std::string& name, const Shape& input, int filters, const ConvLayerOptions& options) {
  const std::string who = label(name, kKind);
  check_window(who, input, filters, transposed_window(options));
  if (options.initializer == Initializer::kDirac) {
    throw ConfigError(who + " has no filters that pass a channel through", "use another initializer");
  }
  const int beyond = options.padding == ConvPadding::kValid ? std::max(0, options.kernel - options.stride) : 0;
  return {input[0] * options.stride + beyond, input[1] * options.stride + beyond, filters};
}

}  // namespace

ConvTransposeLayer::ConvTransposeLayer(const std::string& name, const Shape& input, int filters,
                                       const ConvLayerOptions& options)
    : Layer(name, enlarged_shape(name, input, filters, options)), input_(input), options_(options) {}

LayerAttributes ConvTransposeLayer::attributes() const {
  return {{"filters", shape()[2]},
          {"kernel", options_.kernel},
          {"stride", options_.stride},
          {"padding", to_text(options_.padding)},
          {"bias", options_.bias},
          {"trained_weights", options_.trained_weights},
          {"initializer", to_text(options_.initializer)}};
}

std::shared_ptr<const Layer> ConvTransposeLayer::from(const LayerRecord& record) {
  const LayerAttributes& given = record.attributes;
  const ConvLayerOptions options{.kernel = given.whole("kernel"),
                                 .stride = given.whole("stride"),
                                 .padding = padding_of(record, kKind),
                                 .bias = given.flag("bias"),
                                 .trained_weights = given.flag("trained_weights"),
                                 .initializer = initializer_of(record)};
  return std::make_shared<ConvTransposeLayer>(record.name, only_input(record), given.whole("filters"), options);
}

// Fans are Keras's and PyTorch's, which take the result's channels for those that come in.
std::vector<VariableSpec> ConvTransposeLayer::variables() const {
  const std::int64_t kernel = options_.kernel;
  std::vector<VariableSpec> specs{
      {.name = "weights",
       .shape = Shape{input_[2], kernel, kernel, shape()[2]},
       .role = options_.trained_weights ? VariableRole::kTrained : VariableRole::kFrozen,
       .fill = to_fill(options_.initializer),
       .fan_in = kernel * kernel * shape()[2],
       .fan_out = kernel * kernel * input_[2],
       .product_weights = true}};
  if (options_.bias) specs.push_back({.name = "bias", .shape = Shape{shape()[2]}});
  return specs;
}

ConvOptions ConvTransposeLayer::geometry(Precision precision) const {
  return conv_options(shape(), transposed_window(options_), precision);
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
