#include "headrace/train/net/layers/global_average_pool_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

Shape global_pool_result_shape(const std::string& name, const Shape& input) {
  if (input.rank() != 3 && input.rank() != 2) {
    throw ConfigError(label(name, "global_average_pool") +
                      " needs an input of shape (height, width, channels) or (positions, features), got " +
                      input.to_string());
  }
  return Shape{input.back()};
}

// A sequence is an image of width 1.
TensorView as_images(const TensorView& view) {
  const Shape& shape = view.shape;
  return shape.rank() == 4 ? view : TensorView{view.data, Shape{shape[0], shape[1], 1, shape[2]}, view.dtype};
}

}  // namespace

GlobalAveragePoolLayer::GlobalAveragePoolLayer(const std::string& name, const Shape& input)
    : Layer(name, global_pool_result_shape(name, input)) {}

void GlobalAveragePoolLayer::forward(LayerContext& context) const {
  context.kernels.global_average_pool_forward(context.stream, as_images(context.inputs[0]), context.output);
}

void GlobalAveragePoolLayer::backward(LayerContext& context) const {
  if (!context.input_gradients[0].defined()) return;
  context.kernels.global_average_pool_backward(context.stream, context.output_gradient,
                                               as_images(context.input_gradients[0]));
}

}  // namespace headrace
