#include "headrace/train/net/layers/embedding_layer.h"

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr int kMaxEntries = 1 << 24;  // the numbers are f32

Shape embedded_shape(const std::string& name, const Shape& input, int entries, int width) {
  const std::string who = label(name, "embedding");
  if (entries < 1 || entries > kMaxEntries || width < 1) {
    throw ConfigError(who + " has " + std::to_string(entries) + " entries of width " + std::to_string(width) +
                      "; there may be 1 to " + std::to_string(kMaxEntries) + ", of width 1 or more");
  }
  std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end());
  if (extents.size() >= Shape::kMaxRank - 1) {
    throw ConfigError(who + " of an input of shape " + input.to_string() + " would have too many axes");
  }
  extents.push_back(width);
  return Shape(extents);
}

// The numbers of all rows, in their order.
TensorView as_numbers(const TensorView& view) { return {view.data, Shape{view.elements()}, view.dtype}; }

}  // namespace

EmbeddingLayer::EmbeddingLayer(const std::string& name, const Shape& input, int entries, int width)
    : Layer(name, embedded_shape(name, input, entries, width)), entries_(entries) {}

LayerAttributes EmbeddingLayer::attributes() const {
  return {{"entries", entries_}, {"width", static_cast<std::int64_t>(shape().back())}};
}

std::shared_ptr<const Layer> EmbeddingLayer::from(const LayerRecord& record) {
  return std::make_shared<EmbeddingLayer>(record.name, only_input(record), record.attributes.whole("entries"),
                                          record.attributes.whole("width"));
}

// As Keras initializes it: uniform in +-0.05.
std::vector<VariableSpec> EmbeddingLayer::variables() const {
  return {
      {.name = "vectors", .shape = Shape{entries_, shape().back()}, .fill = Fill::kUniform, .constant = 0.05F}};
}

void EmbeddingLayer::forward(LayerContext& context) const {
  context.kernels.embed(context.stream, as_numbers(context.inputs[0]), context.variables[0],
                        as_matrix(context.output));
}

// Numbers have no gradient: they come from the data.
void EmbeddingLayer::backward(LayerContext& context) const {
  const TensorView& dx = context.input_gradients[0];
  if (dx.defined()) context.stream.fill(dx.data, 0, dx.bytes());
  context.kernels.embed_backward(context.stream, as_numbers(context.inputs[0]), as_matrix(context.output_gradient),
                                 context.variable_gradients[0]);
}

}  // namespace headrace
