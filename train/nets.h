// Named nets ready to use. Inputs: field "image", f32 or u8; results: logits.
#pragma once

#include <string>
#include <vector>

#include "headrace/train/graph.h"

namespace headrace {

// 784-256-256-10 with ReLU, 269,322 parameters. Takes (784) or (28, 28, 1).
Node mnist_mlp(Graph& graph);
// Two 3x3 convolutions with pooling, dropout and a dense layer, for (28, 28, 1).
Node fashion_cnn(Graph& graph);
// Five 3x3 convolutions with batch norm and dropout, for (32, 32, 3).
Node cifar10_cnn(Graph& graph);

// By recipe name: "mnist-mlp", "fashion-mnist", "cifar10-cnn". ConfigError listing them.
Net named_net(const std::string& name);
std::vector<std::string> net_names();

}  // namespace headrace
