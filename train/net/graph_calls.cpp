// Custom layers, layers called again, and nets within nets.
#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/graph.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {

Node Graph::call(std::shared_ptr<const Layer> layer, const std::vector<Node>& inputs,
                 const LayerOptions& options) {
  if (layer == nullptr || layer->kind() == "input") {
    throw ConfigError("call() was given no layer that can be called", "name fields of the data with input()");
  }
  const auto same = [&](const Entry& entry) { return entry.layer == layer; };
  if (const auto first = std::ranges::find_if(nodes_, same); first != nodes_.end()) {
    return call_with({.graph = this, .id = first->owner}, std::move(layer), inputs, options);
  }
  Entry entry{.name = unique_name(options.name.empty() ? layer->name() : options.name, layer->kind()),
              .layer = std::move(layer)};
  entry.inputs = require(inputs, entry.name);
  return append(std::move(entry));
}

Node Graph::call_with(Node owner, std::shared_ptr<const Layer> layer, const std::vector<Node>& inputs,
                      const LayerOptions& options) {
  const int first = this->owner(require(owner, layer->name()));
  const bool own_name =
      std::ranges::none_of(nodes_, [&](const Entry& each) { return each.name == layer->name(); });
  const std::string wanted = options.name.empty() && own_name ? layer->name() : options.name;
  Entry entry{.name = unique_name(wanted, name(first)), .layer = std::move(layer), .owner = first};
  const auto alike = [](const VariableSpec& a, const VariableSpec& b) {
    return a.name == b.name && a.shape == b.shape && a.role == b.role;
  };
  if (!std::ranges::equal(entry.layer->variables(), this->layer(first).variables(), alike)) {
    throw ConfigError(label(entry.name, entry.layer->kind()) + " cannot have the variables of " +
                          label(name(first), this->layer(first).kind()) + ": their shapes differ",
                      "call it on inputs of the same shape");
  }
  entry.inputs = require(inputs, entry.name);
  return append(std::move(entry));
}

Node Graph::again(Node first, const std::vector<Node>& inputs, const LayerOptions& options) {
  const int id = require(first, "again()");
  const Entry& entry = nodes_[static_cast<std::size_t>(id)];
  const std::string kind = entry.layer->kind();
  if (entry.is_option) {
    const Activation activated = activation_named(kind);
    const Node x = again({.graph = this, .id = entry.inputs.front()}, inputs, options);
    return activation_after(x, activated, name(x.id));
  }
  const LayerKind* built_in = find_layer_kind(kind);
  if (built_in == nullptr) return call_with(first, entry.layer, inputs, options);
  const std::string name = unique_name(options.name, this->name(id));
  const std::vector<Shape> shapes = shapes_of(require(inputs, name));
  return call_with(
      first, built_in->make({.name = name, .inputs = shapes, .attributes = entry.layer->attributes()}), inputs);
}

std::vector<Node> Graph::call(const Graph& net, const std::vector<Node>& inputs, const NetCallOptions& options) {
  std::vector<int> outputs;
  for (const std::string& name : options.outputs) outputs.push_back(net.node(name).id);
  if (options.outputs.empty()) outputs = net.outputs();
  if (outputs.empty()) throw ConfigError("a net was called that is not finished and whose results are not named");
  const std::vector<bool> wanted = net.leading_to(outputs);
  const std::string prefix = options.name.empty() ? "" : options.name + "/";
  std::vector<int> made(wanted.size(), -1), owners(wanted.size(), -1);
  std::size_t given = 0;
  for (int id = 0; id < net.size(); ++id) {
    const auto at = static_cast<std::size_t>(id);
    const Layer& layer = net.layer(id);
    if (!wanted[at]) continue;
    if (layer.kind() == "input") {
      const Node node = inputs.empty()          ? input(net.name(id), layer.shape())
                        : given < inputs.size() ? inputs[given]
                                                : Node{};
      made[at] = require(node, prefix + net.name(id));
      ++given;
      if (shape(node) == layer.shape()) continue;
      throw ConfigError("input '" + net.name(id) + "' of a net is called with shape " + shape(node).to_string() +
                        ", it takes " + layer.shape().to_string());
    }
    std::vector<int> from;
    for (const int each : net.inputs(id)) from.push_back(made[static_cast<std::size_t>(each)]);
    int& owner = owners[static_cast<std::size_t>(net.owner(id))];
    made[at] = repeat(net.nodes_[at], owner, std::move(from), prefix).id;
    if (owner < 0) owner = made[at];
  }
  if (!inputs.empty() && given != inputs.size()) {
    throw ConfigError("a net of " + std::to_string(given) + " inputs is called with " +
                      std::to_string(inputs.size()));
  }
  std::vector<Node> results;
  for (const int output : outputs) results.push_back({this, made[static_cast<std::size_t>(output)]});
  return results;
}

Node Graph::repeat(const Entry& entry, int owner, std::vector<int> inputs, const std::string& prefix) {
  const auto same = [&](const Entry& each) { return each.layer == entry.layer; };
  if (owner < 0) {
    const auto first = std::ranges::find_if(nodes_, same);
    if (first != nodes_.end()) owner = first->owner;
  }
  std::string name = prefix + entry.name;
  if (owner >= 0) name = unique_name("", name);
  return append({.name = unique_name(name, ""),
                 .layer = entry.layer,
                 .owner = owner,
                 .is_option = entry.is_option,
                 .inputs = std::move(inputs)});
}

std::vector<bool> Graph::leading_to(const std::vector<int>& ids) const {
  std::vector<bool> leads(nodes_.size(), false);
  for (const int id : ids) leads[static_cast<std::size_t>(id)] = true;
  for (int id = size() - 1; id >= 0; --id) {
    if (!leads[static_cast<std::size_t>(id)]) continue;
    for (const int input : inputs(id)) leads[static_cast<std::size_t>(input)] = true;
  }
  return leads;
}

Net net_of(const Graph& graph, std::vector<std::string> outputs) {
  return [&graph, outputs = std::move(outputs)](Graph& made) {
    return Results(made.call(graph, {}, {.outputs = outputs}));
  };
}

// The calls of a graph that are attention, alone and within its dense layers.

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
