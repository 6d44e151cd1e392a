// A net that is one chain of layers:
//   Net net = Sequential().flatten().dense(256, {.activation = Activation::kRelu}).dense(10).net("image");
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/train/graph.h"

namespace HEADRACE_API headrace {

// A value; copies share nothing.
class Sequential {
 public:
  Sequential& dense(int units, DenseLayerOptions options = {});
  Sequential& conv(int filters, ConvLayerOptions options = {});
  Sequential& batch_norm(BatchNormLayerOptions options = {});
  Sequential& relu();
  Sequential& gelu();
  Sequential& silu();
  Sequential& sigmoid();
  Sequential& tanh();
  Sequential& softmax();
  Sequential& max_pool(int window, PoolLayerOptions options = {});
  Sequential& average_pool(int window, PoolLayerOptions options = {});
  Sequential& global_average_pool();
  Sequential& flatten();
  Sequential& dropout(float rate);
  // Adds what `layers` makes of the chain's result: any layer of the graph, or several.
  Sequential& then(std::function<Node(Graph&, Node)> layers);

  // The chain on the field `input`, whose shape is this one, or else the data set's.
  Net net(const std::string& input, std::optional<Shape> shape = std::nullopt) const;

 private:
  std::vector<std::function<Node(Graph&, Node)>> steps_;
};

}  // namespace headrace
