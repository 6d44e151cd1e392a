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
  if (entry.behind) {
    const Activation activated = activation_named(kind);
    const Node x = again({.graph = this, .id = entry.inputs.front()}, inputs, options);
    return activation_behind(x, activated, name(x.id));
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
                 .behind = entry.behind,
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

}  // namespace headrace
