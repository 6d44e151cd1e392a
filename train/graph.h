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

#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/record.h"
#include "headrace/train/layer_options.h"

namespace headrace {

class Graph;
class Layer;

// The result of a layer: a number in its graph. Copyable; valid as long as the graph.
struct Node {
  const Graph* graph = nullptr;
  int id = -1;
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
  Node softmax(Node x, const LayerOptions& options = {});  // only as the last layer

  Node max_pool(Node x, int window, const PoolLayerOptions& options = {});
  Node global_average_pool(Node x, const LayerOptions& options = {});
  Node flatten(Node x, const LayerOptions& options = {});
  Node dropout(Node x, float rate, const LayerOptions& options = {});
  Node scale(Node x, float factor, const LayerOptions& options = {});  // factor * x
  Node add(Node a, Node b, const LayerOptions& options = {});

  // Names the result and closes the graph: a layer added later, or one that leads nowhere, is a ConfigError.
  void finish(Node output);

  const Shape& shape(Node node) const;
  std::vector<LayerInfo> layers() const;

  // For the trainer.
  int size() const noexcept { return static_cast<int>(nodes_.size()); }
  int output() const noexcept { return output_; }
  const Layer& layer(int id) const { return *nodes_.at(static_cast<std::size_t>(id)).layer; }
  const std::vector<int>& inputs(int id) const { return nodes_.at(static_cast<std::size_t>(id)).inputs; }
  const std::vector<int>& consumers(int id) const { return nodes_.at(static_cast<std::size_t>(id)).consumers; }

 private:
  struct Entry {
    std::unique_ptr<const Layer> layer;
    std::vector<int> inputs;
    std::vector<int> consumers;
  };

  Node append(std::unique_ptr<const Layer> layer, std::vector<int> inputs);
  Node activation(Node x, Activation kind, const std::string& name);
  int require(Node x, const std::string& layer) const;
  std::string unique_name(const std::string& wanted, const std::string& kind) const;

  Fields known_;
  std::vector<Entry> nodes_;
  int output_ = -1;
};

// A net as a function: adds layers, returns the one whose result is the model's.
using Net = std::function<Node(Graph&)>;

}  // namespace headrace
