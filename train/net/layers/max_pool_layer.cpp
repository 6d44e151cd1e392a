#include "headrace/train/net/layers/max_pool_layer.h"

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

int pool_padding(const LayerAttributes& attributes) {
  const bool given =
      std::ranges::any_of(attributes.entries(), [](const auto& entry) { return entry.first == "padding"; });
  return given ? attributes.whole("padding") : 0;
}

}  // namespace

PoolOptions pool_geometry(int window, const PoolLayerOptions& options) {
  return {.window = window, .stride = options.stride == 0 ? window : options.stride, .pad = options.padding};
}

Shape pooled_shape(const std::string& who, const Shape& input, const PoolOptions& geometry) {
  if (input.rank() != 3) {
    throw ConfigError(who + " needs an input of shape (height, width, channels), got " + input.to_string());
  }
  if (geometry.window < 1 || geometry.window > 16 || geometry.stride < 1) {
    throw ConfigError(who + " needs a window of 1 to 16 and a stride of at least 1, got " +
                      std::to_string(geometry.window) + " and " + std::to_string(geometry.stride));
  }
  if (geometry.pad < 0 || geometry.pad > geometry.window / 2) {
    throw ConfigError(who + " of window " + std::to_string(geometry.window) + " cannot be padded by " +
                      std::to_string(geometry.pad) + ": paddings go from 0 to half a window");
  }
  const std::int64_t height = input[0] + 2 * geometry.pad, width = input[1] + 2 * geometry.pad;
  if (height < geometry.window || width < geometry.window) {
    throw ConfigError(who + " of window " + std::to_string(geometry.window) + " does not fit into " +
                      input.to_string());
  }
  return {(height - geometry.window) / geometry.stride + 1, (width - geometry.window) / geometry.stride + 1,
          input[2]};
}

MaxPoolLayer::MaxPoolLayer(const std::string& name, const Shape& input, int window,
                           const PoolLayerOptions& options)
    : Layer(name, pooled_shape(label(name, "max_pool"), input, pool_geometry(window, options))),
      geometry_(pool_geometry(window, options)) {}

LayerAttributes MaxPoolLayer::attributes() const {
  LayerAttributes attributes{{"window", geometry_.window}, {"stride", geometry_.stride}};
  if (geometry_.pad > 0) attributes.add("padding", geometry_.pad);  // absent from earlier files
  return attributes;
}

std::shared_ptr<const Layer> MaxPoolLayer::from(const LayerRecord& record) {
  return std::make_shared<MaxPoolLayer>(
      record.name, only_input(record), record.attributes.whole("window"),
      PoolLayerOptions{.stride = record.attributes.whole("stride"), .padding = pool_padding(record.attributes)});
}

std::vector<SavedSpec> MaxPoolLayer::saved(const StepShape& step) const {
  return {{.shape = shape().with_front(step.rows), .dtype = DType::kU8}};
}

void MaxPoolLayer::forward(LayerContext& context) const {
  context.kernels.max_pool_forward(context.stream, context.inputs[0], context.output, context.saved[0], geometry_);
}

void MaxPoolLayer::backward(LayerContext& context) const {
  if (!context.input_gradients[0].defined()) return;
  context.kernels.max_pool_backward(context.stream, context.output_gradient, context.saved[0],
                                    context.input_gradients[0], geometry_);
}

}  // namespace headrace
