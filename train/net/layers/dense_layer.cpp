// y = x weights' + bias over the last axis.
#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

Shape dense_result_shape(const std::string& name, const Shape& input, int units) {
  if (input.rank() < 1) {
    throw ConfigError(label(name, "dense") + " needs at least one axis, got " + input.to_string());
  }
  if (units < 1)
    throw ConfigError(label(name, "dense") + " needs at least one unit, got " + std::to_string(units));
  std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end());
  extents.back() = units;
  return Shape(extents);
}

class DenseLayer final : public OptionLayer<DenseLayerOptions> {
 public:
  DenseLayer(const std::string& name, const Shape& input, const DenseLayerOptions& options)
      : OptionLayer(name, dense_result_shape(name, input, options.units), options), features_(input.back()) {}

  std::vector<VariableSpec> variables() const override {
    std::vector<VariableSpec> specs{{.name = "weights",
                                     .shape = Shape{options_.units, features_},
                                     .fill = to_fill(options_.initializer),
                                     .fan_in = features_,
                                     .fan_out = options_.units,
                                     .product_weights = true}};
    if (options_.bias) specs.push_back({.name = "bias", .shape = Shape{options_.units}});
    return specs;
  }

  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .takes_epilogue = true, .casts = true, .variables_beside = true};
  }

  void forward(LayerContext& context) const override {
    context.kernels.dense_forward(
        context.stream,
        {as_matrix(context.inputs[0]), context.variables[0], options_.bias ? context.variables[1] : TensorView{},
         as_matrix(context.output), context.epilogue, context.precision});
  }

  void backward(LayerContext& context) const override {
    const TensorView dy = as_matrix(context.output_gradient);
    context.kernels.dense_backward_weights(
        context.variables_stream(),
        {as_matrix(context.inputs[0]), dy, context.variable_gradients[0],
         options_.bias ? context.variable_gradients[1] : TensorView{}, context.precision});
    if (context.input_gradients[0].defined()) {
      context.kernels.dense_backward_data(
          context.stream, {dy, context.variables[0], as_matrix(context.input_gradients[0]), context.precision});
    }
  }

 private:
  std::int64_t features_;
};

}  // namespace

LayerKind dense_layer() { return kind_of_layer<DenseLayer>(); }

}  // namespace headrace
