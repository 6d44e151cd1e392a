#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/python_layer.h"
#include "headrace/bindings/python/train/python_node.h"
#include "headrace/bindings/python/train/words.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/nets.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using GraphPtr = std::shared_ptr<OpenGraph>;

std::vector<Node> nodes_of(const std::vector<PythonNode>& several) {
  std::vector<Node> nodes;
  for (const PythonNode& one : several) nodes.push_back(one.node);
  return nodes;
}

// A layer that takes one input and nothing but a name.
using NamedLayer = Node (Graph::*)(Node, const LayerOptions&);

template <NamedLayer kLayer>
PythonNode add_layer(const GraphPtr& graph, const PythonNode& x, const std::string& name) {
  return {graph, (graph->get().*kLayer)(x.node, {.name = name})};
}

PythonNode add_input(const GraphPtr& graph, const std::string& field,
                     const std::optional<std::vector<std::int64_t>>& shape) {
  Graph& open = graph->get();
  return {graph, shape ? open.input(field, Shape(std::span<const std::int64_t>(*shape))) : open.input(field)};
}

PythonNode add_dense(const GraphPtr& graph, const PythonNode& x, int units,
                     const std::optional<std::string>& activation, bool bias, const std::string& initializer,
                     const std::string& name) {
  return {graph, graph->get().dense(x.node, units,
                                    {.activation = activation_of(activation),
                                     .bias = bias,
                                     .initializer = initializer_of(initializer),
                                     .name = name})};
}

PythonNode add_batch_norm(const GraphPtr& graph, const PythonNode& x, float momentum, float epsilon, bool scale,
                          bool synchronised, const std::string& name) {
  return {
      graph,
      graph->get().batch_norm(
          x.node,
          {.momentum = momentum, .epsilon = epsilon, .scale = scale, .synchronised = synchronised, .name = name})};
}

std::string free_name(const Graph& graph, const std::string& usual) {
  const std::vector<LayerInfo> layers = graph.layers();
  const auto taken = [&](const std::string& name) {
    return std::ranges::any_of(layers, [&](const LayerInfo& layer) { return layer.name == name; });
  };
  std::string name = usual;
  for (int number = 1; taken(name); ++number) name = usual + "_" + std::to_string(number);
  return name;
}

PythonNode add_python_layer(const nb::object& layer, const std::vector<PythonNode>& inputs,
                            const std::string& name, const std::string& usual) {
  const GraphPtr graph = inputs.at(0).graph;
  return {graph, graph->call(layer, nodes_of(inputs), name, usual)};
}

Results results_of(nb::handle returned) {
  PythonNode one;
  if (nb::try_cast(returned, one)) return one.node;
  std::vector<PythonNode> several;
  if (nb::try_cast(returned, several)) return nodes_of(several);
  throw ConfigError("the net's function returned " + std::string(nb::str(returned.type()).c_str()) +
                        " in place of a node or a list of nodes",
                    "end it with 'return x', x being what a layer gave");
}

// Closes the graph to Python whichever way the net's function ends.
class Closing {
 public:
  explicit Closing(GraphPtr graph) : graph_(std::move(graph)) {}
  ~Closing() { graph_->close(); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  GraphPtr graph_;
};

void bind_node(nb::module_& module) {
  nb::class_<PythonNode>(module, "Node", "The result of a layer, to be given to other layers.")
      .def_prop_ro(
          "shape", [](const PythonNode& x) { return tuple_of(x.graph->get().shape(x.node)); },
          "Of one example's result, without the batch's extent.")
      .def_prop_ro(
          "name", [](const PythonNode& x) { return x.graph->get().name(x.node.id); }, "Its layer's name.")
      .def("__repr__",
           [](const PythonNode& x) {
             if (x.graph->is_closed()) return std::string("Node(of a net that is built)");
             const Graph& graph = x.graph->get();
             return "Node(" + graph.name(x.node.id) + ": " + graph.shape(x.node).to_string() + ")";
           })
      .def("__add__",
           [](const PythonNode& a, const PythonNode& b) {
             return PythonNode{a.graph, a.graph->get().add(a.node, b.node)};
           })
      .def("__mul__",
           [](const PythonNode& x, float factor) {
             return PythonNode{x.graph, x.graph->get().scale(x.node, factor)};
           })
      .def("__rmul__", [](const PythonNode& x, float factor) {
        return PythonNode{x.graph, x.graph->get().scale(x.node, factor)};
      });
}

// What Keras's layers take when called: the value of a sequence that attends to itself is the query.
AttentionInputs attention_inputs(const PythonNode& query, const std::optional<PythonNode>& value,
                                 const std::optional<PythonNode>& key, const std::optional<PythonNode>& mask) {
  const auto node = [](const std::optional<PythonNode>& given) { return given ? given->node : Node{}; };
  return {.query = query.node, .value = value ? value->node : query.node, .key = node(key), .mask = node(mask)};
}

PythonNode add_attention(const GraphPtr& graph, const PythonNode& query, const std::optional<PythonNode>& value,
                         const std::optional<PythonNode>& key, const std::optional<PythonNode>& mask, int heads,
                         bool causal, float dropout, const std::string& name) {
  return {graph, graph->get().attention(attention_inputs(query, value, key, mask), heads,
                                        {.causal = causal, .dropout = dropout, .name = name})};
}

PythonNode add_multi_head_attention(const GraphPtr& graph, const PythonNode& query,
                                    const std::optional<PythonNode>& value, const std::optional<PythonNode>& key,
                                    const std::optional<PythonNode>& mask, int heads, int key_dim,
                                    std::optional<int> value_dim, std::optional<int> output_dim, bool causal,
                                    float dropout, bool bias, const std::string& initializer,
                                    const std::string& name) {
  return {graph, graph->get().multi_head_attention(attention_inputs(query, value, key, mask), heads, key_dim,
                                                   {.value_dim = value_dim.value_or(0),
                                                    .output_dim = output_dim.value_or(0),
                                                    .causal = causal,
                                                    .dropout = dropout,
                                                    .bias = bias,
                                                    .initializer = initializer_of(initializer),
                                                    .name = name})};
}

// The methods that add layers take the graph's holder, so that a node keeps it.
template <typename Function, typename... Extra>
void method(nb::class_<OpenGraph>& graph, const char* name, Function&& function, const Extra&... extra) {
  graph.def(name, std::forward<Function>(function), extra...);
}

void bind_layers_with_variables(nb::class_<OpenGraph>& graph) {
  method(graph, "input", &add_input, "field"_a, "shape"_a = nb::none(),
         "A field of the batch. float32 is taken as it is, uint8 becomes x / 255, int64 the nearest float32. The "
         "shape is one example's; None: "
         "that of the data given to build().");
  method(graph, "dense", &add_dense, "x"_a, "units"_a, nb::kw_only(), "activation"_a = nb::none(), "bias"_a = true,
         "initializer"_a = "glorot_uniform", "name"_a = "",
         "Acts on the last axis; any other axes count as rows. activation: 'relu', 'gelu', 'silu', 'sigmoid', "
         "'tanh', 'leaky_relu', 'elu', 'softplus', 'softmax' or 'linear': that layer follows.");
  method(graph, "batch_norm", &add_batch_norm, "x"_a, nb::kw_only(), "momentum"_a = 0.99F, "epsilon"_a = 1e-3F,
         "scale"_a = true, "synchronised"_a = false, "name"_a = "",
         "Running statistics are momentum * running + (1 - momentum) * batch.");
}

void bind_sequence_layers(nb::class_<OpenGraph>& graph) {
  method(
      graph, "layer_norm",
      [](const GraphPtr& open, const PythonNode& x, float epsilon, bool scale, bool center,
         const std::string& name) {
        return PythonNode{open, open->get().layer_norm(
                                    x.node, {.epsilon = epsilon, .scale = scale, .center = center, .name = name})};
      },
      "x"_a, nb::kw_only(), "epsilon"_a = 1e-3F, "scale"_a = true, "center"_a = true, "name"_a = "",
      "Normalises each example's last axis.");
  method(
      graph, "embedding",
      [](const GraphPtr& open, const PythonNode& x, int entries, int width, const std::string& name) {
        return PythonNode{open, open->get().embedding(x.node, entries, width, {.name = name})};
      },
      "x"_a, "entries"_a, "width"_a, nb::kw_only(), "name"_a = "",
      "A trained vector for each number of x, an int64 field of numbers below `entries`.");
  method(graph, "position_embedding", &add_layer<&Graph::position_embedding>, "x"_a, nb::kw_only(), "name"_a = "",
         "Adds a trained vector to each position of a sequence (positions, features).");
  method(
      graph, "attention", &add_attention, "query"_a, "value"_a = nb::none(), "key"_a = nb::none(),
      "mask"_a = nb::none(), nb::kw_only(), "heads"_a = 1, "causal"_a = false, "dropout"_a = 0.0F, "name"_a = "",
      "Scaled dot-product attention of sequences (positions, features), whose features are divided among the "
      "heads. value: by default the query; key: by default the value. mask: a node (positions of value); where it "
      "is 0, no query looks. causal: queries look at positions up to their own only.");
  method(graph, "multi_head_attention", &add_multi_head_attention, "query"_a, "value"_a = nb::none(),
         "key"_a = nb::none(), "mask"_a = nb::none(), nb::kw_only(), "heads"_a, "key_dim"_a,
         "value_dim"_a = nb::none(), "output_dim"_a = nb::none(), "causal"_a = false, "dropout"_a = 0.0F,
         "bias"_a = true, "initializer"_a = "glorot_uniform", "name"_a = "",
         "Attention between dense layers: 'NAME/query', 'NAME/value' and 'NAME/key' before it, of heads * key_dim "
         "units (value: heads * value_dim), and 'NAME' after it, of output_dim units or as many as the query has "
         "features. value, key, mask and causal: as attention() takes them.");
}

void bind_functions(nb::class_<OpenGraph>& graph) {
  method(graph, "relu", &add_layer<&Graph::relu>, "x"_a, nb::kw_only(), "name"_a = "");
  method(graph, "gelu", &add_layer<&Graph::gelu>, "x"_a, nb::kw_only(), "name"_a = "");
  method(graph, "silu", &add_layer<&Graph::silu>, "x"_a, nb::kw_only(), "name"_a = "");
  method(graph, "sigmoid", &add_layer<&Graph::sigmoid>, "x"_a, nb::kw_only(), "name"_a = "");
  method(graph, "tanh", &add_layer<&Graph::tanh>, "x"_a, nb::kw_only(), "name"_a = "");
  method(graph, "leaky_relu", &add_layer<&Graph::leaky_relu>, "x"_a, nb::kw_only(), "name"_a = "",
         "With the slope 0.2 below 0.");
  method(graph, "elu", &add_layer<&Graph::elu>, "x"_a, nb::kw_only(), "name"_a = "");
  method(graph, "softplus", &add_layer<&Graph::softplus>, "x"_a, nb::kw_only(), "name"_a = "");
  method(
      graph, "activation",
      [](const GraphPtr& open, const PythonNode& x, const std::string& word, const std::string& name) {
        return PythonNode{open, open->get().activation(x.node, activation_named(word), {.name = name})};
      },
      "x"_a, "activation"_a, nb::kw_only(), "name"_a = "", "The layer of this word: 'relu', 'softmax', ...");
  method(graph, "softmax", &add_layer<&Graph::softmax>, "x"_a, nb::kw_only(), "name"_a = "",
         "Over the last axis.");
  method(graph, "flatten", &add_layer<&Graph::flatten>, "x"_a, nb::kw_only(), "name"_a = "");
  method(graph, "global_average_pool", &add_layer<&Graph::global_average_pool>, "x"_a, nb::kw_only(),
         "name"_a = "");
  method(
      graph, "dropout",
      [](const GraphPtr& open, const PythonNode& x, float rate, const std::string& name) {
        return PythonNode{open, open->get().dropout(x.node, rate, {.name = name})};
      },
      "x"_a, "rate"_a, nb::kw_only(), "name"_a = "");
  method(
      graph, "scale",
      [](const GraphPtr& open, const PythonNode& x, float factor, const std::string& name) {
        return PythonNode{open, open->get().scale(x.node, factor, {.name = name})};
      },
      "x"_a, "factor"_a, nb::kw_only(), "name"_a = "", "factor * x.");
}

void bind_layers_of_several(nb::class_<OpenGraph>& graph) {
  method(
      graph, "add",
      [](const GraphPtr& open, const std::vector<PythonNode>& several, const std::string& name) {
        return PythonNode{open, open->get().add(nodes_of(several), {.name = name})};
      },
      "several"_a, nb::kw_only(), "name"_a = "", "The sum of a list of nodes; of two also a + b.");
  method(
      graph, "concat",
      [](const GraphPtr& open, const std::vector<PythonNode>& several, const std::string& name) {
        return PythonNode{open, open->get().concat(nodes_of(several), {.name = name})};
      },
      "several"_a, nb::kw_only(), "name"_a = "", "Side by side on the last axis.");
  method(
      graph, "again",
      [](const GraphPtr& open, const PythonNode& first, const std::vector<PythonNode>& inputs,
         const std::string& name) {
        return PythonNode{open, open->get().again(first.node, nodes_of(inputs), {.name = name})};
      },
      "first"_a, "inputs"_a, nb::kw_only(), "name"_a = "",
      "The layer that gave `first` once more, on other inputs, with the same variables.");
  method(
      graph, "call_net",
      [](const GraphPtr& open, const std::string& json, const std::vector<PythonNode>& inputs,
         const std::vector<std::string>& outputs, const std::string& name, const nb::object& custom_objects) {
        const auto factories = nb::cast<nb::dict>(
            nb::module_::import_("headrace._own_parts").attr("layer_factories")(custom_objects));
        std::vector<PythonNode> nodes;
        for (const Node node :
             open->get().call(open->read(json, factories), nodes_of(inputs), {.name = name, .outputs = outputs})) {
          nodes.push_back({open, node});
        }
        return nodes;
      },
      "json"_a, "inputs"_a = std::vector<PythonNode>(), nb::kw_only(), "outputs"_a = std::vector<std::string>(),
      "name"_a = "", "custom_objects"_a = nb::none(),
      "The results of the net that Model.to_json() wrote, or those of the layers named `outputs`, on as many "
      "inputs as "
      "it has, or on the fields that it names. Calls of the same text share their variables. name: before the "
      "names of "
      "its layers, 'encoder/conv'. custom_objects: the classes of its custom layers, {'Swish': Swish}.");
  method(
      graph, "net",
      [](const GraphPtr& open, const std::string& name, int classes) {
        const Results results = net_named(name, classes)(open->get());
        std::vector<PythonNode> nodes;
        for (const Node node : results.nodes) nodes.push_back({open, node});
        return nodes;
      },
      "name"_a, nb::kw_only(), "classes"_a = 0,
      "The results of one of net_names(), within this graph. classes 0: the net's usual number.");
}

}  // namespace

Graph& OpenGraph::get() const {
  if (graph_ != nullptr) return *graph_;
  throw ConfigError("the net of this graph is built: it takes no more layers and its nodes are gone",
                    "call its methods within the function given to build()");
}

const Graph& OpenGraph::read(const std::string& json, const nb::dict& factories) {
  std::unique_ptr<Graph>& net = nets_[json];
  if (net == nullptr) net = graph_from_json(json, python_layer_makers(factories, *devices_));
  return *net;
}

Node OpenGraph::call(const nb::object& layer, const std::vector<Node>& inputs, const std::string& name,
                     const std::string& usual) {
  Graph& graph = get();
  std::vector<Shape> shapes;
  for (const Node input : inputs) shapes.push_back(graph.shape(input));
  const auto same = [&](const CalledLayer& each) { return *each.object == layer.ptr(); };
  if (const auto known = std::ranges::find_if(called_, same); known != called_.end()) {
    const std::string& first = graph.name(known->first.id);
    return graph.call_with(known->first, python_layer(layer, first, shapes, *devices_), inputs, {.name = name});
  }
  const std::string chosen = name.empty() ? free_name(graph, usual) : name;
  const Node node = graph.call(python_layer(layer, chosen, shapes, *devices_), inputs);
  called_.push_back({.object = share(nb::borrow(layer)), .first = node});
  return node;
}

Net net_of_python(nb::object net, const DeviceGroup& devices) {
  std::string name;
  if (nb::try_cast(net, name)) return net_named(name);
  if (!nb::hasattr(net, "__call__")) {
    throw ConfigError(
        "a net is a function of a graph or the name of one, not " + std::string(nb::str(net.type()).c_str()),
        "as strategy.build(lambda g: g.dense(g.flatten(g.input('image', (28, 28, 1))), 10))");
  }
  return [function = share(std::move(net)), &devices](Graph& graph) -> Results {
    const nb::gil_scoped_acquire lock;
    auto open = std::make_shared<OpenGraph>(graph, devices);
    const Closing closing(open);
    return results_of(object_of(function)(open));
  };
}

void bind_graph(nb::module_& module) {
  bind_node(module);
  nb::class_<OpenGraph> graph(module, "Graph",
                              "A net as layers called on each other's results. Shapes are inferred and checked at "
                              "once; images are channels-last.");
  graph.def("__repr__", [](const OpenGraph& of) {
    return std::string(of.is_closed() ? "Graph(of a net that is built)" : "Graph(of a net that is being built)");
  });
  bind_layers_with_variables(graph);
  bind_image_layers(graph);
  bind_functions(graph);
  bind_sequence_layers(graph);
  bind_layers_of_several(graph);
  module.def("call_layer", &add_python_layer, "layer"_a, "inputs"_a, "name"_a, "usual"_a);
  module.def("net_names", &net_names, "The nets that build() knows by name.");
}

}  // namespace headrace::python
