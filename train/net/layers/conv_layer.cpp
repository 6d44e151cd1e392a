#include "headrace/train/net/layers/conv_layer.h"

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

std::int64_t result_extent(std::int64_t input, const ConvLayerOptions& options) {
  const std::int64_t covered = options.padding == ConvPadding::kValid ? input - options.kernel : input - 1;
  return covered < 0 ? 0 : covered / options.stride + 1;
}

// Returns the pixels of padding over both sides.
int same_padding(std::int64_t input, const ConvLayerOptions& options) {
  const std::int64_t reach = (result_extent(input, options) - 1) * options.stride + options.kernel;
  return static_cast<int>(std::max<std::int64_t>(0, reach - input));
}

Shape conv_result_shape(const std::string& name, const Shape& input, int filters,
                        const ConvLayerOptions& options) {
  const std::string who = label(name, "conv");
  if (input.rank() != 3) {
    throw ConfigError(who + " needs an input of shape (height, width, channels), got " + input.to_string());
  }
  if (filters < 1 || options.kernel < 1 || options.stride < 1) {
    throw ConfigError(who + " needs filters, kernel and stride of at least 1, got " + std::to_string(filters) +
                      ", " + std::to_string(options.kernel) + " and " + std::to_string(options.stride));
  }
  if (options.padding == ConvPadding::kEven && options.kernel % 2 == 0) {
    throw ConfigError(who + " of kernel " + std::to_string(options.kernel) + " cannot be padded evenly",
                      "use ConvPadding::kSame or an odd kernel");
  }
  const Shape result{result_extent(input[0], options), result_extent(input[1], options), filters};
  if (result[0] < 1 || result[1] < 1) {
    throw ConfigError(who + " of kernel " + std::to_string(options.kernel) + " does not fit into " +
                          input.to_string() + ": the result would be " + result.to_string(),
                      "use ConvPadding::kSame or a smaller kernel");
  }
  return result;
}

constexpr std::array<const char*, 3> kPaddings{"same", "even", "valid"};  // in the order of ConvPadding

ConvPadding padding_of(const LayerRecord& record) {
  const std::string name = record.attributes.text("padding");
  const auto found = std::ranges::find(kPaddings, name);
  if (found == kPaddings.end()) {
    throw ConfigError(label(record.name, "conv") + " has the unknown padding '" + name + "'");
  }
  return static_cast<ConvPadding>(found - kPaddings.begin());
}

}  // namespace

LayerAttributes ConvLayer::attributes() const {
  return {{"filters", shape()[2]},
          {"kernel", options_.kernel},
          {"stride", options_.stride},
          {"padding", kPaddings.at(static_cast<std::size_t>(options_.padding))},
          {"bias", options_.bias},
          {"trained_weights", options_.trained_weights},
          {"initializer", to_text(options_.initializer)}};
}

std::shared_ptr<const Layer> ConvLayer::from(const LayerRecord& record) {
  const LayerAttributes& given = record.attributes;
  const ConvLayerOptions options{.kernel = given.whole("kernel"),
                                 .stride = given.whole("stride"),
                                 .padding = padding_of(record),
                                 .bias = given.flag("bias"),
                                 .trained_weights = given.flag("trained_weights"),
                                 .initializer = initializer_of(record)};
  return std::make_shared<ConvLayer>(record.name, only_input(record), given.whole("filters"), options);
}

ConvLayer::ConvLayer(const std::string& name, const Shape& input, int filters, const ConvLayerOptions& options)
    : Layer(name, conv_result_shape(name, input, filters, options)), input_(input), options_(options) {}

std::vector<VariableSpec> ConvLayer::variables() const {
  const std::int64_t kernel = options_.kernel;
  std::vector<VariableSpec> specs{
      {.name = "weights",
       .shape = Shape{shape()[2], kernel, kernel, input_[2]},
       .role = options_.trained_weights ? VariableRole::kTrained : VariableRole::kFrozen,
       .fill = to_fill(options_.initializer),
       .fan_in = kernel * kernel * input_[2],
       .fan_out = kernel * kernel * shape()[2],
       .product_weights = true}};
  if (options_.bias) specs.push_back({.name = "bias", .shape = Shape{shape()[2]}});
  return specs;
}

ConvOptions ConvLayer::geometry(Precision precision) const {
  ConvOptions geometry{.stride = options_.stride, .precision = precision};
  if (options_.padding == ConvPadding::kSame) {
    const int height = same_padding(input_[0], options_);
    const int width = same_padding(input_[1], options_);
    geometry.pad_top = height / 2;
    geometry.pad_bottom = height - height / 2;
    geometry.pad_left = width / 2;
    geometry.pad_right = width - width / 2;
  }
  if (options_.padding == ConvPadding::kEven) {
    geometry.pad_top = geometry.pad_bottom = geometry.pad_left = geometry.pad_right = (options_.kernel - 1) / 2;
  }
  return geometry;
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
