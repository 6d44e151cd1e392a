// A layer as a program outside the tree would write it: a gated residual step, y = x + gelu(x weights' + bias).
#pragma once

#include "headrace/train/layers.h"

namespace headrace::test {

class ResidualStep final : public Layer {
 public:
  ResidualStep(const std::string& name, const Shape& input, float rate) : Layer(name, input), rate_(rate) {}

  static std::shared_ptr<const Layer> from(const LayerRecord& record) {
    return std::make_shared<ResidualStep>(record.name, record.inputs.at(0), record.attributes.number("rate"));
  }

  std::string kind() const override { return "residual_step"; }
  LayerAttributes attributes() const override { return {{"rate", rate_}}; }
  std::vector<VariableSpec> variables() const override {
    const std::int64_t width = shape().back();
    return {{.name = "weights",
             .shape = Shape{width, width},
             .fill = Fill::kGlorotUniform,
             .fan_in = width,
             .fan_out = width},
            {.name = "bias", .shape = Shape{width}}};
  }
  // Of each row: what is activated, and room for what comes of it.
  std::vector<SavedSpec> saved(const StepShape& step) const override {
    const SavedSpec spec{.shape = shape().with_front(step.rows)};
    return {spec, spec};
  }
  LayerTraits traits(Mode) const override { return {.backward_reads_input = true, .f32 = true}; }

  void forward(LayerContext& context) const override {
    const TensorView &x = context.inputs[0], &linear = context.saved[0], &step = context.saved[1];
    context.kernels.dense_forward(context.stream, {as_matrix(x), context.variables[0], context.variables[1],
                                                   as_matrix(linear), Activation::kNone, context.precision});
    context.kernels.activation_forward(context.stream, {Activation::kGelu, linear, step});
    context.kernels.scale(context.stream, {step, step, rate_});
    context.kernels.add(context.stream, {x, step, context.output});
  }

  void backward(LayerContext& context) const override {
    const TensorView &dy = context.output_gradient, &linear = context.saved[0], &step = context.saved[1];
    context.kernels.scale(context.stream, {dy, step, rate_});
    context.kernels.activation_backward(context.stream, {Activation::kGelu, linear, step, step});
    context.kernels.dense_backward_weights(
        context.stream, {as_matrix(context.inputs[0]), as_matrix(step), context.variable_gradients[0],
                         context.variable_gradients[1], context.precision});
    const TensorView& dx = context.input_gradients[0];
    if (!dx.defined()) return;
    context.kernels.dense_backward_data(context.stream,
                                        {as_matrix(step), context.variables[0], as_matrix(dx), context.precision});
    context.kernels.accumulate(context.stream, {dy, dx});
  }

 private:
  float rate_;
};

}  // namespace headrace::test
