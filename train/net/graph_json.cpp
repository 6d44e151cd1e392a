#include "headrace/train/graph.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/net/attribute_json.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

[[noreturn]] void refuse_graph(const std::string& place, const std::string& why) {
  throw ConfigError(fmt::format("a graph's JSON is wrong at {}: {}", place, why));
}

Json written_layer(const Graph& graph, int id) {
  Json json{{"name", graph.name(id)}, {"kind", graph.layer(id).kind()}};
  if (!graph.inputs(id).empty()) json["inputs"] = Json::array();
  for (const int input : graph.inputs(id)) json["inputs"].push_back(graph.name(input));
  if (graph.owner(id) != id) json["variables_of"] = graph.name(graph.owner(id));
  const LayerAttributes attributes = graph.layer(id).attributes();
  for (const auto& [name, value] : attributes.entries()) json["attributes"][name] = attribute_to_json(value);
  return json;
}

std::string text_at(const Json& json, const char* key, const std::string& place) {
  if (json.is_object() && json.contains(key) && json.at(key).is_string()) return json.at(key).get<std::string>();
  refuse_graph(place, fmt::format("the text '{}' is missing", key));
}

std::vector<std::string> texts_at(const Json& json, const char* key, const std::string& place) {
  std::vector<std::string> texts;
  if (!json.is_object() || !json.contains(key)) return texts;
  if (!json.at(key).is_array()) refuse_graph(place, fmt::format("'{}' is not a list", key));
  for (const Json& each : json.at(key)) {
    if (!each.is_string()) refuse_graph(place, fmt::format("'{}' is not a list of names", key));
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

LayerAttributes attributes_from(const Json& json, const std::string& place) {
  LayerAttributes attributes;
  if (!json.contains("attributes")) return attributes;
  if (!json.at("attributes").is_object()) refuse_graph(place, "'attributes' is not an object");
  for (const auto& [name, value] : json.at("attributes").items()) {
    const auto attribute = attribute_from_json(value);
    if (!attribute) refuse_graph(place + ".attributes." + name, kNoAttribute);
    attributes.add(name, *attribute);
  }
  return attributes;
}

// Adds the layers of a JSON text to a graph.
class GraphReader {
 public:
  GraphReader(Graph& graph, const LayerMakers& own) : graph_(&graph), own_(&own) {}

  Results read(const std::string& text) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) throw ConfigError("a graph's JSON does not parse");
    if (!json.is_object() || json.value("version", Json()) != kVersion) {
      refuse_graph("version", fmt::format("expected {}", kVersion));
    }
    if (!json.contains("layers") || !json.at("layers").is_array()) refuse_graph("layers", "expected a list");
    for (std::size_t i = 0; i < json.at("layers").size(); ++i) {
      read_layer(json.at("layers")[i], fmt::format("layers[{}]", i));
    }
    return nodes(texts_at(json, "outputs", "outputs"), "outputs");
  }

 private:
  void read_layer(const Json& json, const std::string& place) {
    const std::string name = text_at(json, "name", place), kind = text_at(json, "kind", place);
    LayerRecord record{.name = name, .inputs = {}, .attributes = attributes_from(json, place)};
    const std::vector<Node> inputs = nodes(texts_at(json, "inputs", place), place);
    for (const Node input : inputs) record.inputs.push_back(graph_->shape(input));
    std::vector<Node> owner;
    if (json.contains("variables_of")) owner = nodes({text_at(json, "variables_of", place)}, place);
    try {
      nodes_.insert_or_assign(name, add(kind, record, inputs, owner));
    } catch (const ConfigError& error) {
      refuse_graph(fmt::format("{} ('{}')", place, name), error.what());
    }
  }

  Node add(const std::string& kind, const LayerRecord& record, const std::vector<Node>& inputs,
           const std::vector<Node>& owner) {
    if (kind == "input") return graph_->input(record.name, record.attributes.shape("shape"));
    std::shared_ptr<const Layer> layer = maker(kind)(record);
    for (const auto& [given, value] : record.attributes.entries()) check_known(given, *layer);
    if (owner.empty()) return graph_->call(std::move(layer), inputs);
    return graph_->call_with(owner.front(), std::move(layer), inputs);
  }

  const LayerMaker& maker(const std::string& kind) const {
    if (const auto found = own_->find(kind); found != own_->end()) return found->second;
    if (const LayerKind* found = find_layer_kind(kind)) return found->make;
    throw ConfigError(
        "no layer is of the kind '" + kind + "'",
        joined({advice("if it is a custom one, hand over what makes it in {}", named("CustomParts::layers")),
                "read the net in the program that made it"}));
  }

  static void check_known(const std::string& name, const Layer& layer) {
    const LayerAttributes known = layer.attributes();
    for (const auto& [each, value] : known.entries()) {
      if (each == name) return;
    }
    throw ConfigError("a layer of the kind '" + layer.kind() + "' has no attribute '" + name + "'");
  }

  std::vector<Node> nodes(const std::vector<std::string>& names, const std::string& place) const {
    std::vector<Node> found;
    for (const std::string& name : names) {
      const auto at = nodes_.find(name);
      if (at == nodes_.end()) refuse_graph(place, "no layer before it is called '" + name + "'");
      found.push_back(at->second);
    }
    return found;
  }

  Graph* graph_;
  const LayerMakers* own_;
  std::map<std::string, Node> nodes_;
};

}  // namespace

std::string to_json(const Graph& graph) {
  if (graph.outputs().empty()) throw ConfigError("the graph is not finished", "name its results first");
  Json json{{"version", kVersion}, {"layers", Json::array()}, {"outputs", Json::array()}};
  for (int id = 0; id < graph.size(); ++id) json["layers"].push_back(written_layer(graph, id));
  for (const int id : graph.outputs()) json["outputs"].push_back(graph.name(id));
  return json.dump(1);
}

std::unique_ptr<Graph> graph_from_json(const std::string& json, const LayerMakers& own) {
  auto graph = std::make_unique<Graph>();
  graph->finish(GraphReader(*graph, own).read(json));
  return graph;
}

Net net_from_json(const std::string& json, const LayerMakers& own) {
  return [json, own](Graph& graph) { return GraphReader(graph, own).read(json); };
}

}  // namespace headrace
