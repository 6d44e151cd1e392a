#include "headrace/train/net/layers/average_pool_layer.h"

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/max_pool_layer.h"

namespace headrace {
namespace {

Shape averaged_shape(const std::string& who, const Shape& input, const PoolOptions& geometry) {
  if (geometry.pad != 0) {
    throw ConfigError(who + " pads nothing, and was given a padding of " + std::to_string(geometry.pad),
                      "leave it out; only max pooling takes one");
  }
  return pooled_shape(who, input, geometry);
}

}  // namespace

AveragePoolLayer::AveragePoolLayer(const std::string& name, const Shape& input, int window,
                                   const PoolLayerOptions& options)
    : Layer(name, averaged_shape(label(name, "average_pool"), input, pool_geometry(window, options))),
      geometry_(pool_geometry(window, options)) {}

LayerAttributes AveragePoolLayer::attributes() const {
  return {{"window", geometry_.window}, {"stride", geometry_.stride}};
}

std::shared_ptr<const Layer> AveragePoolLayer::from(const LayerRecord& record) {
  return std::make_shared<AveragePoolLayer>(record.name, only_input(record), record.attributes.whole("window"),
                                            PoolLayerOptions{.stride = record.attributes.whole("stride")});
}

void AveragePoolLayer::forward(LayerContext& context) const {
  context.kernels.average_pool_forward(context.stream, context.inputs[0], context.output, geometry_);
}

void AveragePoolLayer::backward(LayerContext& context) const {
  if (!context.input_gradients[0].defined()) return;
  context.kernels.average_pool_backward(context.stream, context.output_gradient, context.input_gradients[0],
                                        geometry_);
}

}  // namespace headrace
