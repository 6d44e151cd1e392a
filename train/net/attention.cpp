// The calls of a graph that are attention, alone and within its dense layers.
#include "headrace/devices/base/error.h"
#include "headrace/train/graph.h"

namespace headrace {

Node Graph::attention(const AttentionInputs& inputs, int heads, AttentionLayerOptions options) {
  std::vector<Node> all{inputs.query, inputs.key.graph == nullptr ? inputs.value : inputs.key, inputs.value};
  if (inputs.mask.graph != nullptr) all.push_back(inputs.mask);
  options.heads = heads;
  return add_layer(all, options);
}

Node Graph::multi_head_attention(const AttentionInputs& inputs, int heads, int key_dim,
                                 const MultiHeadAttentionLayerOptions& options) {
  const std::string name = unique_name(options.name, "multi_head_attention");
  const auto sequence = [&](Node x) {
    const Shape& shape = layer(require(x, name)).shape();
    if (shape.rank() == 2) return x;
    throw ConfigError(label(name, "multi_head_attention") +
                          " needs sequences of shape (positions, features), got " + shape.to_string(),
                      shape.rank() == 1 ? "embedding() makes a sequence from numbers" : "");
  };
  const int value_dim = options.value_dim == 0 ? key_dim : options.value_dim;
  if (heads < 1 || key_dim < 1 || value_dim < 1 || options.output_dim < 0) {
    throw ConfigError(label(name, "multi_head_attention") + " has " + std::to_string(heads) +
                          " heads with keys of width " + std::to_string(key_dim) + " and values of width " +
                          std::to_string(value_dim) + ", and an output of width " +
                          std::to_string(options.output_dim),
                      "give at least one head, and widths of at least 1");
  }
  const auto projected = [&](Node x, int width, const std::string& part) {
    return dense(sequence(x), heads * width,
                 {.bias = options.bias, .initializer = options.initializer, .name = name + "/" + part});
  };
  const Node key = inputs.key.graph == nullptr ? inputs.value : inputs.key;
  const AttentionInputs of_heads{.query = projected(inputs.query, key_dim, "query"),
                                 .value = projected(inputs.value, value_dim, "value"),
                                 .key = projected(key, key_dim, "key"),
                                 .mask = inputs.mask};
  const Node attended = attention(
      of_heads, heads, {.causal = options.causal, .dropout = options.dropout, .name = name + "/attention"});
  const int outputs = options.output_dim == 0 ? static_cast<int>(shape(inputs.query).back()) : options.output_dim;
  return dense(attended, outputs, {.bias = options.bias, .initializer = options.initializer, .name = name});
}

}  // namespace headrace
