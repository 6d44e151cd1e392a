// A net as JSON text, so that it can be made again without the code that made it:
//   std::string text = to_json(model.graph());
//   Model same = strategy.build(net_from_json(text));
#pragma once

#include <memory>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/train/graph.h"
#include "headrace/train/layers.h"

namespace HEADRACE_API headrace {

// Layers in their order, each with its inputs, attributes and, where it shares them, whose variables it has. Of a
// finished graph.
std::string to_json(const Graph& graph);

// The finished graph. ConfigError names the place where the text is wrong, and a kind of layer that is neither
// the tree's nor among `own`, the makers of your own layers.
std::unique_ptr<Graph> graph_from_json(const std::string& json, const LayerMakers& own = {});

// The same as a net, to build a model from. The text is read when the net is built.
Net net_from_json(const std::string& json, const LayerMakers& own = {});

}  // namespace headrace
