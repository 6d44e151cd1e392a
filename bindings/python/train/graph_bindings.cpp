#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/python_node.h"
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

PythonNode add_input(const GraphPtr& graph, const std::string& field,
                     const std::optional<std::vector<std::int64_t>>& shape) {
  Graph& open = graph->get();
  return {graph, shape ? open.input(field, Shape(std::span<const std::int64_t>(*shape))) : open.input(field)};
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

// Shows what all layers have besides the options of their kind.
void show_call(bool activates, AddLayerOptions& options, OptionVisitor& visit) {
  if (activates) visit("activation", options.activation, "The layer of this activation follows.");
  visit("name", options.name, "Of the layer; \"\": its kind, with a number if that is taken.");
}

// The options of a method that adds a layer, as text.
class LayerSignature {
 public:
  LayerSignature(OptionLister lister, bool activates, int required) {
    AddLayerOptions usual;
    show_call(activates, usual, lister);
    options_ = lister.list();
    placed_.names = first_names(options_, required);
    // Python gives pixels of padding in the word's place.
    for (ListedOption& option : options_) {
      if (option.name == "padding" && has("pixels")) option.type += " | int | collections.abc.Sequence[int]";
    }
  }

  bool has(std::string_view name) const {
    return std::ranges::any_of(options_, [&](const ListedOption& option) { return option.name == name; });
  }
  const Positional& placed() const noexcept { return placed_; }
  // `inputs`: "x: Node".
  std::string text(const std::string& method, const std::string& inputs) const {
    return fmt::format("def {}(self, {}, {}) -> Node", method, inputs, parameters_text(options_, placed_));
  }
  std::string doc(const std::string& sentence) const { return parameters_doc(sentence, options_); }

 private:
  std::vector<ListedOption> options_;
  Positional placed_;
};

void take_pixels_as_padding(nb::dict& given) {
  const nb::object padding = given.get("padding", nb::none());
  if (padding.is_none() || nb::isinstance<nb::str>(padding)) return;
  given["pixels"] = padding;
  given["padding"] = "pixels";
}

std::vector<PythonNode> inputs_of(const PythonNode& x) { return {x}; }
std::vector<PythonNode> inputs_of(const std::vector<PythonNode>& several) { return several; }

// `Inputs`: a node, or a list of nodes.
template <typename Inputs>
void bind_kind(nb::class_<OpenGraph>& graph, const LayerKind& kind, const char* input, const char* type) {
  OptionLister lister;
  kind.attributes(lister);
  const LayerSignature signature(lister, kind.activates, kind.required);
  const std::string text = signature.text(kind.name, fmt::format("{}: {}", input, type));
  const auto add = [&kind, signature, text](const GraphPtr& open, const Inputs& inputs, const nb::args& placed,
                                            const nb::kwargs& named) {
    nb::dict given = given_options(placed, named, signature.placed(), text);
    if (signature.has("pixels")) take_pixels_as_padding(given);
    OptionReader reader(given);
    AddLayerOptions options;
    const LayerAttributes attributes = kind.attributes(reader);
    show_call(kind.activates, options, reader);
    reader.refuse_unknown(kind.name + "()");
    return PythonNode{open, open->get().add_layer(kind.name, nodes_of(inputs_of(inputs)), attributes, options)};
  };
  graph.def(kind.name.c_str(), add, nb::arg(input), "placed"_a, "named"_a, nb::sig(text.c_str()),
            signature.doc(kind.doc).c_str());
}

// `add` adds the layer to a graph from its inputs and options.
template <typename Options, typename Add>
void bind_attention(nb::class_<OpenGraph>& graph, int required, const Add& add) {
  OptionLister lister;
  Options usual;
  usual.each_field(lister);
  const LayerSignature signature(lister, /*activates=*/false, 0);
  std::string text =
      signature.text(Options::kKind,
                     "query: Node, value: Node | None = None, key: Node | None = None, mask: Node | "
                     "None = None");
  std::vector<std::string> needed;
  for (int i = 0; i < required; ++i) {
    const ListedOption& option = lister.list()[static_cast<std::size_t>(i)];
    needed.push_back(option.name);
    const std::string listed = option.name + ": " + option.type;
    text.replace(text.find(listed), listed.size() + 3 + option.usual.size(), listed);
  }
  const auto call = [add, needed, text](const GraphPtr& open, const PythonNode& query,
                                        const std::optional<PythonNode>& value,
                                        const std::optional<PythonNode>& key,
                                        const std::optional<PythonNode>& mask, const nb::kwargs& named) {
    for (const std::string& name : needed) {
      if (!named.contains(name.c_str())) throw nb::type_error(text.c_str());
    }
    OptionReader reader(named);
    AddLayerOptions general;
    Options options;
    options.each_field(reader);
    show_call(/*activates=*/false, general, reader);
    reader.refuse_unknown(std::string(Options::kKind) + "()");
    options.name = general.name;
    return PythonNode{open, add(open->get(), attention_inputs(query, value, key, mask), options)};
  };
  graph.def(Options::kKind, call, "query"_a, "value"_a = nb::none(), "key"_a = nb::none(), "mask"_a = nb::none(),
            "named"_a, nb::sig(text.c_str()), signature.doc(Options::kDoc).c_str());
}

void bind_kinds(nb::class_<OpenGraph>& graph) {
  for (const LayerKind& kind : layer_kinds()) {
    if (kind.name == AttentionLayerOptions::kKind) continue;
    if (kind.several) {
      bind_kind<std::vector<PythonNode>>(graph, kind, "several", "collections.abc.Sequence[Node]");
    } else {
      bind_kind<PythonNode>(graph, kind, "x", "Node");
    }
  }
  bind_attention<AttentionLayerOptions>(
      graph, 0, [](Graph& open, const AttentionInputs& inputs, const AttentionLayerOptions& options) {
        return open.attention(inputs, options.heads, options);
      });
  bind_attention<MultiHeadAttentionLayerOptions>(
      graph, MultiHeadAttentionLayerOptions::kRequired,
      [](Graph& open, const AttentionInputs& inputs, const MultiHeadAttentionLayerOptions& options) {
        return open.multi_head_attention(inputs, options.heads, options.key_dim, options);
      });
}

void bind_other_calls(nb::class_<OpenGraph>& graph) {
  graph.def(
      "input", &add_input, "field"_a, "shape"_a = nb::none(),
      "A field of the batch. float32 is taken as it is, uint8 becomes x / 255, int64 the nearest float32. The "
      "shape is one example's; None: that of the data given to build().");
  graph.def(
      "activation",
      [](const GraphPtr& open, const PythonNode& x, const std::string& word, const std::string& name) {
        return PythonNode{open, open->get().activation(x.node, activation_named(word), {.name = name})};
      },
      "x"_a, "activation"_a, nb::kw_only(), "name"_a = "", "The layer of this word: 'relu', 'softmax', ...");
  graph.def(
      "again",
      [](const GraphPtr& open, const PythonNode& first, const std::vector<PythonNode>& inputs,
         const std::string& name) {
        return PythonNode{open, open->get().again(first.node, nodes_of(inputs), {.name = name})};
      },
      "first"_a, "inputs"_a, nb::kw_only(), "name"_a = "",
      "The layer that gave `first` once more, on other inputs, with the same variables.");
  graph.def(
      "call_net",
      [](const GraphPtr& open, const std::string& json, const std::vector<PythonNode>& inputs,
         const std::vector<std::string>& outputs, const std::string& name, const nb::object& custom_objects) {
        const auto factories = nb::cast<nb::dict>(
            nb::module_::import_("headrace._custom_parts").attr("layer_factories")(custom_objects));
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
  graph.def(
      "net",
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
  bind_kinds(graph);
  bind_other_calls(graph);
  module.def("call_layer", &add_python_layer, "layer"_a, "inputs"_a, "name"_a, "usual"_a);
  module.def(
      "layer_kinds",
      [] {
        std::vector<std::string> names{"activation", MultiHeadAttentionLayerOptions::kKind};
        for (const LayerKind& kind : layer_kinds()) {
          if (!kind.several || kind.name == AttentionLayerOptions::kKind) names.push_back(kind.name);
        }
        return names;
      },
      "The methods of Graph that add a layer to one node.");
  module.def("net_names", &net_names, "The nets that build() knows by name.");
}

}  // namespace headrace::python
