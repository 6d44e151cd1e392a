// A net as layers called on each other's results:
//   Node x = g.input("image", {28, 28, 1});
//   x = g.max_pool(g.relu(g.conv(x, 32, {.kernel = 3})), 2);
//   return g.dense(g.flatten(x), 10);
// Shapes are inferred and checked at once: a ConfigError names the layer and the shapes. Shapes are those of one
// example, without the batch extent; images are channels-last.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/record.h"
#include "headrace/train/layers.h"

namespace HEADRACE_API headrace {

class Graph;

// The result of a layer: a number in its graph. Copyable; valid as long as the graph.
struct Node {
  const Graph* graph = nullptr;
  int id = -1;
};

// The results of a net: one node, or several.
struct Results {
  Results(Node node) : nodes{node} {}
  Results(std::initializer_list<Node> several) : nodes(several) {}
  Results(std::vector<Node> several) : nodes(std::move(several)) {}

  std::vector<Node> nodes;
};

// The sequences of an attention, each (positions, features).
struct AttentionInputs {
  Node query, value;
  Node key = {};   // none: value
  Node mask = {};  // (positions of value): where it is 0, no query looks. None: all look everywhere
};

struct NetCallOptions {
  std::string name = {};                  // prefix for its layers' names: "encoder" gives "encoder/conv"
  std::vector<std::string> outputs = {};  // layers whose results are wanted; empty: the net's own outputs
};

struct AddLayerOptions {
  Activation activation = Activation::kNone;  // follows the layer, fused if possible
  std::string name = {};
};

// For summaries and tools.
struct LayerInfo {
  std::string name;
  std::string kind;  // "conv", "dense", ...
  Shape shape;       // of one example's result
  std::vector<int> inputs;
  std::int64_t parameters = 0;  // trained
  std::int64_t state = 0;       // not trained: running statistics, frozen weights
};

// Built by one thread; immutable and thread-safe after finish(). Not movable: nodes point to it.
class Graph {
 public:
  // `known` are the fields of the data set that the net is for: input() takes shapes from them.
  explicit Graph(Fields known = {});
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  bool knows(const std::string& field) const;

  // Adds a field of the batch; returns the same node when called again. f32 is used as it is, u8 becomes x / 255,
  // i64 the nearest f32: exact up to 2^24.
  Node input(const std::string& field);
  Node input(const std::string& field, const Shape& shape);

  // What each layer does, and its options: layers.h.
  Node dense(Node x, int units, DenseLayerOptions options = {}) {
    options.units = units;
    return add_layer({x}, options);
  }
  Node conv(Node x, int filters, ConvLayerOptions options = {}) {
    options.filters = filters;
    return add_layer({x}, options);
  }
  Node conv_transpose(Node x, int filters, ConvTransposeLayerOptions options = {}) {
    options.filters = filters;
    return add_layer({x}, options);
  }
  Node depthwise_conv(Node x, const DepthwiseConvLayerOptions& options = {}) { return add_layer({x}, options); }
  Node batch_norm(Node x, const BatchNormLayerOptions& options = {}) { return add_layer({x}, options); }
  Node layer_norm(Node x, const LayerNormLayerOptions& options = {}) { return add_layer({x}, options); }
  Node max_pool(Node x, int window, MaxPoolLayerOptions options = {}) {
    options.window = window;
    return add_layer({x}, options);
  }
  Node average_pool(Node x, int window, AveragePoolLayerOptions options = {}) {
    options.window = window;
    return add_layer({x}, options);
  }
  Node dropout(Node x, float rate, DropoutLayerOptions options = {}) {
    options.rate = rate;
    return add_layer({x}, options);
  }
  Node scale(Node x, float factor, ScaleLayerOptions options = {}) {
    options.factor = factor;
    return add_layer({x}, options);
  }
  Node embedding(Node x, int entries, int width, EmbeddingLayerOptions options = {}) {
    options.entries = entries;
    options.width = width;
    return add_layer({x}, options);
  }
  Node position_embedding(Node x, const LayerOptions& options = {}) {
    return named_layer("position_embedding", x, options);
  }
  Node global_average_pool(Node x, const LayerOptions& options = {}) {
    return named_layer("global_average_pool", x, options);
  }
  Node flatten(Node x, const LayerOptions& options = {}) { return named_layer("flatten", x, options); }

  Node relu(Node x, const LayerOptions& options = {}) { return named_layer("relu", x, options); }
  Node gelu(Node x, const LayerOptions& options = {}) { return named_layer("gelu", x, options); }
  Node silu(Node x, const LayerOptions& options = {}) { return named_layer("silu", x, options); }
  Node sigmoid(Node x, const LayerOptions& options = {}) { return named_layer("sigmoid", x, options); }
  Node tanh(Node x, const LayerOptions& options = {}) { return named_layer("tanh", x, options); }
  // Has the slope kLeakySlope below 0.
  Node leaky_relu(Node x, const LayerOptions& options = {}) { return named_layer("leaky_relu", x, options); }
  Node elu(Node x, const LayerOptions& options = {}) { return named_layer("elu", x, options); }
  Node softplus(Node x, const LayerOptions& options = {}) { return named_layer("softplus", x, options); }
  Node softmax(Node x, const LayerOptions& options = {}) { return named_layer("softmax", x, options); }
  // Adds the layer of this activation; none for kNone.
  Node activation(Node x, Activation kind, const LayerOptions& options = {});

  Node add(Node a, Node b, const LayerOptions& options = {}) { return add({a, b}, options); }
  Node add(const std::vector<Node>& several, const LayerOptions& options = {});
  // Concatenates along the last axis.
  Node concat(const std::vector<Node>& several, const LayerOptions& options = {});

  Node attention(const AttentionInputs& inputs, int heads, AttentionLayerOptions options = {});
  Node multi_head_attention(Node x, int heads, int key_dim, const MultiHeadAttentionLayerOptions& options = {}) {
    return multi_head_attention({.query = x, .value = x}, heads, key_dim, options);
  }
  Node multi_head_attention(const AttentionInputs& inputs, int heads, int key_dim,
                            const MultiHeadAttentionLayerOptions& options = {});

  // Adds a layer of this kind from its attributes, as a net's JSON has them: one of layer_kinds(). Throws
  // ConfigError if there is no such kind or attribute.
  Node add_layer(const std::string& kind, const std::vector<Node>& inputs, const LayerAttributes& attributes = {},
                 const AddLayerOptions& options = {});

  // Adds a custom layer made for inputs of these shapes. Calling the same object again shares its variables, and
  // sums the gradients of all calls.
  Node call(std::shared_ptr<const Layer> layer, const std::vector<Node>& inputs, const LayerOptions& options = {});

  // Calls the layer that gave `first` again, on other inputs and with the same variables. An activation given as
  // an option of that layer is applied too.
  Node again(Node first, const std::vector<Node>& inputs, const LayerOptions& options = {});
  // Like again(), with a custom layer made for these inputs. Its variables must be like those of `owner`.
  Node call_with(Node owner, std::shared_ptr<const Layer> layer, const std::vector<Node>& inputs,
                 const LayerOptions& options = {});

  // Calls all layers of another graph that lead to its results, or to the named ones, on as many inputs as it has;
  // with no inputs, on the data fields that it names. Layers are called as they were there. Layers that this graph
  // already has from an earlier call share their variables.
  std::vector<Node> call(const Graph& net, const std::vector<Node>& inputs = {},
                         const NetCallOptions& options = {});

  // Sets the results and closes the graph: adding a layer later, or a layer that leads nowhere, is a ConfigError.
  // Each result is named after its layer.
  void finish(const Results& results);

  const Shape& shape(Node node) const;
  // Returns the layer's node by name. Throws ConfigError if there is none.
  Node node(const std::string& name) const;
  std::vector<LayerInfo> layers() const;

  // For the trainer.
  int size() const noexcept { return static_cast<int>(nodes_.size()); }
  int output() const noexcept { return outputs_.empty() ? -1 : outputs_.front(); }  // the first one
  const std::vector<int>& outputs() const noexcept { return outputs_; }
  const std::string& name(int id) const { return nodes_.at(static_cast<std::size_t>(id)).name; }
  const Layer& layer(int id) const { return *nodes_.at(static_cast<std::size_t>(id)).layer; }
  // Returns the node whose variables this node uses: itself, or an earlier one.
  int owner(int id) const { return nodes_.at(static_cast<std::size_t>(id)).owner; }
  const std::vector<int>& inputs(int id) const { return nodes_.at(static_cast<std::size_t>(id)).inputs; }
  // Returns, by layer, whether it is one of these or one that they depend on.
  std::vector<bool> leading_to(const std::vector<int>& ids) const;
  const std::vector<int>& consumers(int id) const { return nodes_.at(static_cast<std::size_t>(id)).consumers; }

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<const Layer> layer;
    int owner = -1;
    bool is_option = false;  // an activation that was an option of the preceding layer
    std::vector<int> inputs = {};
    std::vector<int> consumers = {};
  };

  template <typename Options>
  HEADRACE_HIDDEN Node add_layer(const std::vector<Node>& inputs, const Options& options) {
    AddLayerOptions with{.name = options.name};
    if constexpr (requires { options.activation; }) with.activation = options.activation;
    return add_layer(Options::kKind, inputs, attributes_of(options), with);
  }
  Node named_layer(const char* kind, Node x, const LayerOptions& options) {
    return add_layer(kind, {x}, {}, {.name = options.name});
  }

  Node append(Entry entry);
  // Calls the layer of `entry`, from another graph. `owner` is the node whose variables it shares, or -1.
  Node repeat(const Entry& entry, int owner, std::vector<int> inputs, const std::string& prefix);
  // Adds an activation that is an option of `layer`: its name derives from that layer's.
  Node activation_after(Node x, Activation kind, const std::string& layer);
  int require(Node x, const std::string& layer) const;
  std::vector<int> require(const std::vector<Node>& several, const std::string& layer) const;
  std::vector<Shape> shapes_of(const std::vector<int>& ids) const;
  void check_end(int id, const std::vector<int>& outputs) const;
  std::string unique_name(const std::string& wanted, const std::string& kind) const;

  Fields known_;
  std::vector<Entry> nodes_;
  std::vector<int> outputs_;  // empty until finish()
};

// A net as a function: adds layers and returns those whose results are the model's.
using Net = std::function<Results(Graph&)>;

// Returns the part of a finished graph that leads to these layers, or all of it: a model of another model's
// intermediate results. REQUIRES: the graph lives until the net is built.
Net net_of(const Graph& graph, std::vector<std::string> outputs = {});

// Returns a net as JSON text, so that it can be recreated without the code that made it:
//   std::string text = to_json(model.graph());
//   Model same = strategy.build(net_from_json(text));
//
// Lists the layers in order, each with its inputs, attributes and, if it shares variables, their owner. REQUIRES:
// the graph is finished.
std::string to_json(const Graph& graph);

// Returns the finished graph. Throws ConfigError naming the place if the text is invalid, or if a kind of layer is
// neither built in nor in `own`, the makers of custom layers.
std::unique_ptr<Graph> graph_from_json(const std::string& json, const LayerMakers& own = {});

// Returns a net to build a model from. The text is read when the net is built.
Net net_from_json(const std::string& json, const LayerMakers& own = {});

// Returns the net as a readable table, one layer per line: name, kind, result shape, parameters; totals below.
std::string summarize(const Graph& graph);

}  // namespace headrace
