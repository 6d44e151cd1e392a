#include "headrace/train/graph.h"

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/net/layers/activation_layer.h"
#include "headrace/train/net/layers/add_layer.h"
#include "headrace/train/net/layers/average_pool_layer.h"
#include "headrace/train/net/layers/batch_norm_layer.h"
#include "headrace/train/net/layers/concat_layer.h"
#include "headrace/train/net/layers/conv_layer.h"
#include "headrace/train/net/layers/conv_transpose_layer.h"
#include "headrace/train/net/layers/dense_layer.h"
#include "headrace/train/net/layers/depthwise_conv_layer.h"
#include "headrace/train/net/layers/dropout_layer.h"
#include "headrace/train/net/layers/embedding_layer.h"
#include "headrace/train/net/layers/flatten_layer.h"
#include "headrace/train/net/layers/global_average_pool_layer.h"
#include "headrace/train/net/layers/input_layer.h"
#include "headrace/train/net/layers/layer.h"
#include "headrace/train/net/layers/layer_norm_layer.h"
#include "headrace/train/net/layers/max_pool_layer.h"
#include "headrace/train/net/layers/position_embedding_layer.h"
#include "headrace/train/net/layers/scale_layer.h"
#include "headrace/train/net/layers/softmax_layer.h"

namespace headrace {

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
  return append(std::make_unique<InputLayer>(field, shape), {});
}

Node Graph::dense(Node x, int units, const DenseLayerOptions& options) {
  const std::string name = unique_name(options.name, "dense");
  const int from = require(x, name);
  const Node y = append(std::make_unique<DenseLayer>(name, shape(x), units, options), {from});
  return activation_behind(y, options.activation, name);
}

Node Graph::conv(Node x, int filters, const ConvLayerOptions& options) {
  const std::string name = unique_name(options.name, "conv");
  const int from = require(x, name);
  const Node y = append(std::make_unique<ConvLayer>(name, shape(x), filters, options), {from});
  return activation_behind(y, options.activation, name);
}

Node Graph::conv_transpose(Node x, int filters, const ConvTransposeLayerOptions& options) {
  const std::string name = unique_name(options.name, "conv_transpose");
  const int from = require(x, name);
  const Node y = append(std::make_shared<ConvTransposeLayer>(name, shape(x), filters, options), {from});
  return activation_behind(y, options.activation, name);
}

Node Graph::depthwise_conv(Node x, const DepthwiseConvLayerOptions& options) {
  const std::string name = unique_name(options.name, "depthwise_conv");
  const int from = require(x, name);
  const Node y = append(std::make_shared<DepthwiseConvLayer>(name, shape(x), options), {from});
  return activation_behind(y, options.activation, name);
}

Node Graph::batch_norm(Node x, const BatchNormLayerOptions& options) {
  const std::string name = unique_name(options.name, "batch_norm");
  const int from = require(x, name);
  return append(std::make_unique<BatchNormLayer>(name, shape(x), options), {from});
}

Node Graph::relu(Node x, const LayerOptions& options) { return activation(x, Activation::kRelu, options); }
Node Graph::gelu(Node x, const LayerOptions& options) { return activation(x, Activation::kGelu, options); }
Node Graph::silu(Node x, const LayerOptions& options) { return activation(x, Activation::kSilu, options); }
Node Graph::sigmoid(Node x, const LayerOptions& options) { return activation(x, Activation::kSigmoid, options); }
Node Graph::tanh(Node x, const LayerOptions& options) { return activation(x, Activation::kTanh, options); }
Node Graph::leaky_relu(Node x, const LayerOptions& options) {
  return activation(x, Activation::kLeakyRelu, options);
}
Node Graph::elu(Node x, const LayerOptions& options) { return activation(x, Activation::kElu, options); }
Node Graph::softplus(Node x, const LayerOptions& options) { return activation(x, Activation::kSoftplus, options); }
Node Graph::softmax(Node x, const LayerOptions& options) { return activation(x, Activation::kSoftmax, options); }

Node Graph::activation(Node x, Activation kind, const LayerOptions& options) {
  if (kind == Activation::kNone) return x;
  const std::string name = unique_name(options.name, to_text(kind));
  return append_activation(require(x, name), kind, name, /*behind=*/false);
}

Node Graph::activation_behind(Node x, Activation kind, const std::string& behind) {
  if (kind == Activation::kNone) return x;
  return append_activation(require(x, behind), kind, behind + "/" + to_text(kind), /*behind=*/true);
}

Node Graph::append_activation(int from, Activation kind, const std::string& name, bool behind) {
  const Shape& input = layer(from).shape();
  std::shared_ptr<const Layer> made;
  if (kind == Activation::kSoftmax) {
    made = std::make_shared<SoftmaxLayer>(name, input);
  } else {
    made = std::make_shared<ActivationLayer>(name, input, kind);
  }
  return append({.name = name, .layer = std::move(made), .behind = behind, .inputs = {from}});
}

Node Graph::layer_norm(Node x, const LayerNormLayerOptions& options) {
  const std::string name = unique_name(options.name, "layer_norm");
  const int from = require(x, name);
  return append(std::make_shared<LayerNormLayer>(name, shape(x), options), {from});
}

Node Graph::embedding(Node x, int entries, int width, const EmbeddingLayerOptions& options) {
  const std::string name = unique_name(options.name, "embedding");
  const int from = require(x, name);
  return append(std::make_shared<EmbeddingLayer>(name, shape(x), entries, width), {from});
}

Node Graph::position_embedding(Node x, const LayerOptions& options) {
  const std::string name = unique_name(options.name, "position_embedding");
  const int from = require(x, name);
  return append(std::make_shared<PositionEmbeddingLayer>(name, shape(x)), {from});
}

Node Graph::max_pool(Node x, int window, const PoolLayerOptions& options) {
  const std::string name = unique_name(options.name, "max_pool");
  const int from = require(x, name);
  return append(std::make_unique<MaxPoolLayer>(name, shape(x), window, options), {from});
}

Node Graph::average_pool(Node x, int window, const PoolLayerOptions& options) {
  const std::string name = unique_name(options.name, "average_pool");
  const int from = require(x, name);
  return append(std::make_shared<AveragePoolLayer>(name, shape(x), window, options), {from});
}

Node Graph::global_average_pool(Node x, const LayerOptions& options) {
  const std::string name = unique_name(options.name, "global_average_pool");
  const int from = require(x, name);
  return append(std::make_unique<GlobalAveragePoolLayer>(name, shape(x)), {from});
}

Node Graph::flatten(Node x, const LayerOptions& options) {
  const std::string name = unique_name(options.name, "flatten");
  const int from = require(x, name);
  return append(std::make_unique<FlattenLayer>(name, shape(x)), {from});
}

Node Graph::dropout(Node x, float rate, const LayerOptions& options) {
  const std::string name = unique_name(options.name, "dropout");
  const int from = require(x, name);
  return append(std::make_unique<DropoutLayer>(name, shape(x), rate), {from});
}

Node Graph::scale(Node x, float factor, const LayerOptions& options) {
  const std::string name = unique_name(options.name, "scale");
  const int from = require(x, name);
  return append(std::make_unique<ScaleLayer>(name, shape(x), factor), {from});
}

Node Graph::add(Node a, Node b, const LayerOptions& options) { return add(std::vector{a, b}, options); }

Node Graph::add(const std::vector<Node>& several, const LayerOptions& options) {
  const std::string name = unique_name(options.name, "add");
  std::vector<int> inputs = require(several, name);
  auto layer = std::make_shared<AddLayer>(name, shapes_of(inputs));
  return append(std::move(layer), std::move(inputs));
}

Node Graph::concat(const std::vector<Node>& several, const LayerOptions& options) {
  const std::string name = unique_name(options.name, "concat");
  std::vector<int> inputs = require(several, name);
  auto layer = std::make_shared<ConcatLayer>(name, shapes_of(inputs));
  return append(std::move(layer), std::move(inputs));
}

Node Graph::append(std::shared_ptr<const Layer> layer, std::vector<int> inputs) {
  const std::string name = layer->name();
  return append({.name = name, .layer = std::move(layer), .inputs = std::move(inputs)});
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
    throw ConfigError("the net's result, " + who + ", has layers behind it", "return the last layer");
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

}  // namespace headrace
