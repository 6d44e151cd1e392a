#include "headrace/train/net/layers/concat_layer.h"

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

Shape concat_shape(const std::string& name, const std::vector<Shape>& inputs) {
  const std::string who = label(name, "concat");
  if (inputs.size() < 2)
    throw ConfigError(who + " needs at least two inputs, got " + std::to_string(inputs.size()));
  std::vector<std::int64_t> extents(inputs.front().extents().begin(), inputs.front().extents().end());
  if (extents.empty()) throw ConfigError(who + " needs inputs of at least one axis");
  extents.back() = 0;
  for (const Shape& shape : inputs) {
    const bool fits = shape.rank() == inputs.front().rank() &&
                      std::equal(extents.begin(), extents.end() - 1, shape.extents().begin());
    if (!fits) {
      throw ConfigError(who + " needs inputs that differ in their last axis alone, got " +
                        inputs.front().to_string() + " and " + shape.to_string());
    }
    extents.back() += shape.back();
  }
  return Shape(extents);
}

}  // namespace

ConcatLayer::ConcatLayer(const std::string& name, const std::vector<Shape>& inputs)
    : Layer(name, concat_shape(name, inputs)) {}

std::shared_ptr<const Layer> ConcatLayer::from(const LayerRecord& record) {
  return std::make_shared<ConcatLayer>(record.name, record.inputs);
}

void ConcatLayer::forward(LayerContext& context) const {
  std::int64_t column = 0;
  for (const TensorView& input : context.inputs) {
    const std::int64_t columns = input.shape.back();
    context.kernels.copy_columns(context.stream, as_matrix(input), 0, as_matrix(context.output), column, columns);
    column += columns;
  }
}

void ConcatLayer::backward(LayerContext& context) const {
  std::int64_t column = 0;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const std::int64_t columns = context.inputs[i].shape.back();
    if (const TensorView& into = context.input_gradients[i]; into.defined()) {
      context.kernels.copy_columns(context.stream, as_matrix(context.output_gradient), column, as_matrix(into), 0,
                                   columns);
    }
    column += columns;
  }
}

}  // namespace headrace
