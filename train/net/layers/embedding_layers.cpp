// Trained vectors for whole numbers, and for the positions of a sequence.
#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

constexpr int kMaxEntries = 1 << 24;  // the numbers are f32

// Keras's initial values: uniform in +-0.05.
VariableSpec vectors_of(const Shape& shape) {
  return {.name = "vectors", .shape = shape, .fill = Fill::kUniform, .constant = 0.05F};
}

Shape embedded_shape(const std::string& name, const Shape& input, const EmbeddingLayerOptions& options) {
  const std::string who = label(name, "embedding");
  if (options.entries < 1 || options.entries > kMaxEntries || options.width < 1) {
    throw ConfigError(who + " has " + std::to_string(options.entries) + " entries of width " +
                      std::to_string(options.width) + "; there may be 1 to " + std::to_string(kMaxEntries) +
                      ", of width 1 or more");
  }
  std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end());
  if (extents.size() >= Shape::kMaxRank - 1) {
    throw ConfigError(who + " of an input of shape " + input.to_string() + " would have too many axes");
  }
  extents.push_back(options.width);
  return Shape(extents);
}

// Returns the numbers of all rows, in their order.
TensorView as_numbers(const TensorView& view) { return {view.data, Shape{view.elements()}, view.dtype}; }

class EmbeddingLayer final : public OptionLayer<EmbeddingLayerOptions> {
 public:
  EmbeddingLayer(const std::string& name, const Shape& input, const EmbeddingLayerOptions& options)
      : OptionLayer(name, embedded_shape(name, input, options), options) {}

  std::vector<VariableSpec> variables() const override {
    return {vectors_of(Shape{options_.entries, options_.width})};
  }
  LayerTraits traits(Mode) const override { return {.backward_reads_input = true, .f32 = true}; }

  void forward(LayerContext& context) const override {
    context.kernels.embed(context.stream,
                          {as_numbers(context.inputs[0]), context.variables[0], as_matrix(context.output)});
  }

  // Numbers have no gradient: they come from the data.
  void backward(LayerContext& context) const override {
    const TensorView& dx = context.input_gradients[0];
    if (dx.defined()) context.stream.fill(dx.data, 0, dx.bytes());
    context.kernels.embed_backward(
        context.stream,
        {as_numbers(context.inputs[0]), as_matrix(context.output_gradient), context.variable_gradients[0]});
  }
};

struct PositionEmbeddingLayerOptions : NoOptions {
  static constexpr const char* kKind = "position_embedding";
  static constexpr const char* kDoc =
      "Adds a trained vector to each position of a sequence (positions, features).";
};

// The vectors are a bias of rows that are whole examples.
TensorView one_row_an_example(const TensorView& view) {
  return {view.data, Shape{view.shape[0], view.elements() / view.shape[0]}, view.dtype};
}
TensorView one_row(const TensorView& view) { return {view.data, Shape{view.elements()}, view.dtype}; }

class PositionEmbeddingLayer final : public OptionLayer<PositionEmbeddingLayerOptions> {
 public:
  PositionEmbeddingLayer(const std::string& name, const Shape& input, const PositionEmbeddingLayerOptions& options)
      : OptionLayer(name, input, options) {
    if (input.rank() == 2) return;
    throw ConfigError(label(name, "position_embedding") + " needs an input of shape (positions, features), got " +
                          input.to_string(),
                      input.rank() == 1 ? "embedding() makes a sequence from numbers" : "");
  }

  std::vector<VariableSpec> variables() const override { return {vectors_of(shape())}; }
  LayerTraits traits(Mode) const override { return {.backward_in_place = true}; }

  void forward(LayerContext& context) const override {
    context.stream.copy(context.output.data, context.inputs[0].data, context.output.bytes());
    context.kernels.add_bias(
        context.stream, {one_row(context.variables[0]), one_row_an_example(context.output), Activation::kNone});
  }

  void backward(LayerContext& context) const override {
    const TensorView &dy = context.output_gradient, &dx = context.input_gradients[0];
    context.kernels.conv_backward_weights(
        context.stream, {{}, one_row_an_example(dy), {}, one_row(context.variable_gradients[0]), {}});
    if (dx.defined() && dx.data != dy.data) context.stream.copy(dx.data, dy.data, dx.bytes());
  }
};

}  // namespace

LayerKind embedding_layer() { return kind_of_layer<EmbeddingLayer>(); }
LayerKind position_embedding_layer() { return kind_of_layer<PositionEmbeddingLayer>(); }

}  // namespace headrace
