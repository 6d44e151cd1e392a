// Layers that move elements and compute nothing: flatten and concat.
#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

struct FlattenLayerOptions : NoOptions {
  static constexpr const char* kKind = "flatten";
  static constexpr const char* kDoc = "Flattens any shape to one axis.";
};

// A view forward, in place backward.
class FlattenLayer final : public OptionLayer<FlattenLayerOptions> {
 public:
  FlattenLayer(const std::string& name, const Shape& input, const FlattenLayerOptions& options)
      : OptionLayer(name, Shape{input.elements()}, options) {}

  LayerTraits traits(Mode) const override { return {.view = true, .backward_in_place = true}; }
  void forward(LayerContext&) const override {}

  void backward(LayerContext& context) const override {
    const TensorView& into = context.input_gradients[0];
    if (!into.defined() || into.data == context.output_gradient.data) return;
    context.stream.copy(into.data, context.output_gradient.data, into.bytes());
  }
};

struct ConcatLayerOptions : NoOptions {
  static constexpr const char* kKind = "concat";
  static constexpr const char* kDoc = "Concatenates results on the last axis; all other axes must match.";
};

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
      throw ConfigError(who + " needs inputs that differ only in their last axis, got " +
                        inputs.front().to_string() + " and " + shape.to_string());
    }
    extents.back() += shape.back();
  }
  return Shape(extents);
}

class ConcatLayer final : public OptionLayer<ConcatLayerOptions> {
 public:
  ConcatLayer(const std::string& name, const std::vector<Shape>& inputs, const ConcatLayerOptions& options)
      : OptionLayer(name, concat_shape(name, inputs), options) {}

  void forward(LayerContext& context) const override {
    std::int64_t column = 0;
    for (const TensorView& input : context.inputs) {
      const std::int64_t columns = input.shape.back();
      context.kernels.copy_columns(context.stream,
                                   {as_matrix(input), as_matrix(context.output), 0, column, columns});
      column += columns;
    }
  }

  void backward(LayerContext& context) const override {
    std::int64_t column = 0;
    for (std::size_t i = 0; i < context.inputs.size(); ++i) {
      const std::int64_t columns = context.inputs[i].shape.back();
      if (const TensorView& into = context.input_gradients[i]; into.defined()) {
        context.kernels.copy_columns(context.stream,
                                     {as_matrix(context.output_gradient), as_matrix(into), column, 0, columns});
      }
      column += columns;
    }
  }
};

}  // namespace

LayerKind flatten_layer() { return kind_of_layer<FlattenLayer>(); }
LayerKind concat_layer() { return kind_of_layer<ConcatLayer>(); }

}  // namespace headrace
