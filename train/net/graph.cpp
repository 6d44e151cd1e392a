#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/graph.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

// A field of the batch, placed into the step's memory before the step starts.
class InputLayer final : public Layer {
 public:
  using Layer::Layer;

  std::string kind() const override { return "input"; }
  LayerAttributes attributes() const override {
    return {{"shape", std::vector<std::int64_t>(shape().extents().begin(), shape().extents().end())}};
  }
  void forward(LayerContext&) const override {}
  void backward(LayerContext&) const override {}
};

}  // namespace

Graph::Graph(Fields known) : known_(std::move(known)) {}
Graph::~Graph() = default;

bool Graph::knows(const std::string& field) const {
  return std::ranges::any_of(known_, [&](const Field& each) { return each.name == field; });
}

Node Graph::input(const std::string& field) {
  if (known_.empty()) {
    throw ConfigError("input '" + field + "' has no shape and the graph knows no data set",
                      joined({"give the shape",
                              advice("build the net with the data's fields: {}", named("BuildOptions::fields"))}));
  }
  return input(field, known_[find_field(known_, field)].shape);
}

Node Graph::input(const std::string& field, const Shape& shape) {
  if (shape.is_dynamic() || shape.elements() < 1) {
    throw ConfigError("input '" + field + "' has the shape " + shape.to_string() + ", which is not fixed",
                      "decode and resize or crop to one size before batch()");
  }
  for (int id = 0; id < size(); ++id) {
    if (name(id) != field) continue;
    if (layer(id).kind() == "input" && layer(id).shape() == shape) return {.graph = this, .id = id};
    throw ConfigError("input '" + field + "' of shape " + shape.to_string() + " has the name of " +
                      label(field, layer(id).kind()) + " of shape " + layer(id).shape().to_string());
  }
  return append({.name = field, .layer = std::make_shared<InputLayer>(field, shape)});
}

Node Graph::add_layer(const std::string& kind, const std::vector<Node>& inputs, const LayerAttributes& attributes,
                      const AddLayerOptions& options) {
  const std::string name = unique_name(options.name, kind);
  std::vector<int> ids = require(inputs, name);
  std::shared_ptr<const Layer> layer =
      layer_kind(kind).make({.name = name, .inputs = shapes_of(ids), .attributes = attributes});
  const Node result = append({.name = name, .layer = std::move(layer), .inputs = std::move(ids)});
  return activation_after(result, options.activation, name);
}

Node Graph::activation(Node x, Activation kind, const LayerOptions& options) {
  return kind == Activation::kNone ? x : named_layer(to_text(kind).c_str(), x, options);
}

Node Graph::activation_after(Node x, Activation kind, const std::string& layer) {
  if (kind == Activation::kNone) return x;
  const Node result = activation(x, kind, {.name = layer + "/" + to_text(kind)});
  nodes_[static_cast<std::size_t>(result.id)].is_option = true;
  return result;
}

Node Graph::add(const std::vector<Node>& several, const LayerOptions& options) {
  return add_layer("add", several, {}, {.name = options.name});
}

Node Graph::concat(const std::vector<Node>& several, const LayerOptions& options) {
  return add_layer("concat", several, {}, {.name = options.name});
}

Node Graph::append(Entry entry) {
  if (!outputs_.empty()) {
    throw ConfigError(label(entry.name, entry.layer->kind()) + " was added to a finished graph",
                      "add all layers within the function given to Strategy::build()");
  }
  const int id = size();
  if (entry.owner < 0) entry.owner = id;
  for (const int input : entry.inputs) nodes_[static_cast<std::size_t>(input)].consumers.push_back(id);
  nodes_.push_back(std::move(entry));
  return {.graph = this, .id = id};
}

std::vector<int> Graph::require(const std::vector<Node>& several, const std::string& layer) const {
  std::vector<int> ids;
  for (const Node node : several) ids.push_back(require(node, layer));
  return ids;
}

std::vector<Shape> Graph::shapes_of(const std::vector<int>& ids) const {
  std::vector<Shape> shapes;
  for (const int id : ids) shapes.push_back(layer(id).shape());
  return shapes;
}

int Graph::require(Node x, const std::string& layer) const {
  if (x.graph == this && x.id >= 0 && x.id < size()) return x.id;
  throw ConfigError("layer '" + layer + "' was called on a node of another graph or of none",
                    "use the nodes that this graph's own functions return");
}

std::string Graph::unique_name(const std::string& wanted, const std::string& kind) const {
  const auto taken = [this](const std::string& name) {
    return std::ranges::any_of(nodes_, [&](const Entry& entry) { return entry.name == name; });
  };
  if (!wanted.empty()) {
    if (taken(wanted)) throw ConfigError("two layers have the name '" + wanted + "'", "names must differ");
    return wanted;
  }
  std::string name = kind;
  for (int number = 1; taken(name); ++number) name = kind + "_" + std::to_string(number);
  return name;
}

void Graph::finish(const Results& results) {
  if (!outputs_.empty()) throw ConfigError("the graph is finished already");
  if (results.nodes.empty()) throw ConfigError("the net has no result", "return the last layer");
  std::vector<int> outputs = require(results.nodes, "(result)");
  for (int id = 0; id < size(); ++id) check_end(id, outputs);
  outputs_ = std::move(outputs);
}

void Graph::check_end(int id, const std::vector<int>& outputs) const {
  const std::string who = label(name(id), layer(id).kind());
  const auto times = std::ranges::count(outputs, id);
  if (times > 1) throw ConfigError("the net gives the result of " + who + " twice", "name each result once");
  if (times == 0 && consumers(id).empty()) {
    const int first = outputs.front();
    throw ConfigError(who + " leads nowhere: nothing uses its result",
                      "the net's result is " + label(name(first), layer(first).kind()));
  }
  if (times == 1 && outputs.size() == 1 && !consumers(id).empty()) {
    throw ConfigError("the net's result, " + who + ", has layers after it", "return the last layer");
  }
}

Node Graph::node(const std::string& name) const {
  std::string names;
  for (int id = 0; id < size(); ++id) {
    if (this->name(id) == name) return {.graph = this, .id = id};
    names += (id == 0 ? "" : ", ") + this->name(id);
  }
  throw ConfigError("the graph has no layer '" + name + "'", "it has " + names);
}

const Shape& Graph::shape(Node node) const { return layer(require(node, "shape()")).shape(); }

std::vector<LayerInfo> Graph::layers() const {
  std::vector<LayerInfo> infos;
  for (int id = 0; id < size(); ++id) {
    const Layer& each = layer(id);
    LayerInfo info{.name = name(id), .kind = each.kind(), .shape = each.shape(), .inputs = inputs(id)};
    if (owner(id) != id) {
      infos.push_back(std::move(info));
      continue;
    }
    for (const VariableSpec& spec : each.variables()) {
      (spec.role == VariableRole::kTrained ? info.parameters : info.state) += spec.shape.elements();
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::string summarize(const Graph& graph) {
  std::string text;
  const auto line = [&](const auto& name, const auto& kind, const auto& shape, const auto& count) {
    fmt::format_to(std::back_inserter(text), "{:<28} {:<20} {:<20} {:>12}\n", name, kind, shape, count);
  };
  line("Layer", "Kind", "Result", "Parameters");
  std::int64_t trained = 0, state = 0;
  for (const LayerInfo& layer : graph.layers()) {
    line(layer.name, layer.kind, layer.shape.to_string(), layer.parameters + layer.state);
    trained += layer.parameters;
    state += layer.state;
  }
  fmt::format_to(std::back_inserter(text), "Total parameters: {}, trained: {}, not trained: {}\n", trained + state,
                 trained, state);
  return text;
}

}  // namespace headrace
