// A net as layers called on each other's results:
//   Node x = g.input("image", {28, 28, 1});
//   x = g.max_pool(g.relu(g.conv(x, 32, {.kernel = 3})), 2);
//   return g.dense(g.flatten(x), 10);
// Shapes are inferred and checked at once: a ConfigError names the layer and the shapes. They are those of one
// example, without the batch's extent; images are channels-last.
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

struct NetCallOptions {
  std::string name = {};                  // before its layers' names: "encoder" gives "encoder/conv"
  std::vector<std::string> outputs = {};  // its layers whose results are wanted; empty: its own
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
  // `known` are the fields of the data set the net is for: input() takes shapes from there.
  explicit Graph(Fields known = {});
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  bool knows(const std::string& field) const;

  // A field of the batch; the same node when called again. f32 is taken as it is, u8 becomes x / 255.
  Node input(const std::string& field);
  Node input(const std::string& field, const Shape& shape);

  // Acts on the last axis; any other axes count as rows.
  Node dense(Node x, int units, const DenseLayerOptions& options = {});
  Node conv(Node x, int filters, const ConvLayerOptions& options = {});
  Node batch_norm(Node x, const BatchNormLayerOptions& options = {});

  Node relu(Node x, const LayerOptions& options = {});
  Node gelu(Node x, const LayerOptions& options = {});
  Node silu(Node x, const LayerOptions& options = {});
  Node sigmoid(Node x, const LayerOptions& options = {});
  Node tanh(Node x, const LayerOptions& options = {});
  Node softmax(Node x, const LayerOptions& options = {});  // over the last axis

  Node max_pool(Node x, int window, const PoolLayerOptions& options = {});
  Node average_pool(Node x, int window, const PoolLayerOptions& options = {});
  Node global_average_pool(Node x, const LayerOptions& options = {});
  Node flatten(Node x, const LayerOptions& options = {});
  Node dropout(Node x, float rate, const LayerOptions& options = {});
  Node scale(Node x, float factor, const LayerOptions& options = {});  // factor * x
  Node add(Node a, Node b, const LayerOptions& options = {});
  Node add(const std::vector<Node>& several, const LayerOptions& options = {});
  // Side by side on the last axis.
  Node concat(const std::vector<Node>& several, const LayerOptions& options = {});

  // A layer of your own, made for inputs of these shapes. Called again, the same object has the same variables,
  // and the sum of all calls' gradients.
  Node call(std::shared_ptr<const Layer> layer, const std::vector<Node>& inputs, const LayerOptions& options = {});

  // The layer that gave `first` once more, on other inputs, with the same variables. An activation that was an
  // option of it comes along.
  Node again(Node first, const std::vector<Node>& inputs, const LayerOptions& options = {});
  // The same with a layer of your own that is made for these inputs. Its variables must be like those of `owner`.
  Node call_with(Node owner, std::shared_ptr<const Layer> layer, const std::vector<Node>& inputs,
                 const LayerOptions& options = {});

  // All layers of another graph that lead to its results, or to those named, on these inputs: as many as it has,
  // or none for the fields of the data that it names. Layers are called as they were there. Where this graph has
  // them already, from another call, they share their variables.
  std::vector<Node> call(const Graph& net, const std::vector<Node>& inputs = {},
                         const NetCallOptions& options = {});

  // Names the results and closes the graph: a layer added later, or one that leads nowhere, is a ConfigError. Each
  // result is called as its layer.
  void finish(const Results& results);

  const Shape& shape(Node node) const;
  // The layer's of this name; ConfigError where there is none.
  Node node(const std::string& name) const;
  std::vector<LayerInfo> layers() const;

  // For the trainer.
  int size() const noexcept { return static_cast<int>(nodes_.size()); }
  int output() const noexcept { return outputs_.empty() ? -1 : outputs_.front(); }  // the first one
  const std::vector<int>& outputs() const noexcept { return outputs_; }
  const std::string& name(int id) const { return nodes_.at(static_cast<std::size_t>(id)).name; }
  const Layer& layer(int id) const { return *nodes_.at(static_cast<std::size_t>(id)).layer; }
  // The node whose variables this one has: itself, or an earlier one.
  int owner(int id) const { return nodes_.at(static_cast<std::size_t>(id)).owner; }
  const std::vector<int>& inputs(int id) const { return nodes_.at(static_cast<std::size_t>(id)).inputs; }
  // By layer, whether it is one of these or they follow from it.
  std::vector<bool> leading_to(const std::vector<int>& ids) const;
  const std::vector<int>& consumers(int id) const { return nodes_.at(static_cast<std::size_t>(id)).consumers; }

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<const Layer> layer;
    int owner = -1;
    bool behind = false;  // an activation that was an option of the layer before it
    std::vector<int> inputs = {};
    std::vector<int> consumers = {};
  };

  Node append(Entry entry);
  // A call of what `entry`, of another graph, is: `owner` is the node whose variables it has, or -1.
  Node repeat(const Entry& entry, int owner, std::vector<int> inputs, const std::string& prefix);
  Node append(std::shared_ptr<const Layer> layer, std::vector<int> inputs);
  Node activation(Node x, Activation kind, const std::string& name);
  int require(Node x, const std::string& layer) const;
  std::vector<int> require(const std::vector<Node>& several, const std::string& layer) const;
  std::vector<Shape> shapes_of(const std::vector<int>& ids) const;
  void check_end(int id, const std::vector<int>& outputs) const;
  std::string unique_name(const std::string& wanted, const std::string& kind) const;

  Fields known_;
  std::vector<Entry> nodes_;
  std::vector<int> outputs_;  // empty till finish()
};

// A net as a function: adds layers, returns those whose results are the model's.
using Net = std::function<Results(Graph&)>;

// The part of a finished graph that leads to these layers, or all of it: a model of what another one computes
// within. The graph must live until the net is built.
Net net_of(const Graph& graph, std::vector<std::string> outputs = {});

// A net as JSON text, so that it can be made again without the code that made it:
//   std::string text = to_json(model.graph());
//   Model same = strategy.build(net_from_json(text));
//
// Layers in their order, each with its inputs, attributes and, where it shares them, whose variables it has. Of a
// finished graph.
std::string to_json(const Graph& graph);

// The finished graph. ConfigError names the place where the text is wrong, and a kind of layer that is neither
// the tree's nor among `own`, the makers of your own layers.
std::unique_ptr<Graph> graph_from_json(const std::string& json, const LayerMakers& own = {});

// The same as a net, to build a model from. The text is read when the net is built.
Net net_from_json(const std::string& json, const LayerMakers& own = {});

// Returns the net as a table for people, one layer a line: name, kind, result shape, parameters; totals below.
std::string summarize(const Graph& graph);

}  // namespace headrace
