#include "headrace/train/records/record.h"

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/graph.h"
#include "headrace/train/records/record_json.h"

namespace headrace {
namespace {

using record_json::Json;

constexpr std::size_t kMaxNamed = 8;

std::string text_of(const Json& value) {
  if (value.is_null()) return "none";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

const Json& member(const Json& object, const std::string& key) {
  static const Json kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

// Compares down to the values that differ: "loss.terms[0].weight".
void compare_json(const std::string& what, const Json& was, const Json& is, Differences& differ) {
  if (was == is) return;
  if (was.is_object() && is.is_object()) {
    for (const auto& [key, value] : was.items()) compare_json(what + "." + key, value, member(is, key), differ);
    for (const auto& [key, value] : is.items()) {
      if (!was.contains(key)) compare_json(what + "." + key, {}, value, differ);
    }
  } else if (was.is_array() && is.is_array() && was.size() == is.size()) {
    for (std::size_t i = 0; i < is.size(); ++i) {
      compare_json(fmt::format("{}[{}]", what, i), was[i], is[i], differ);
    }
  } else {
    differ.add(what, text_of(was), text_of(is));
  }
}

// Removes from an optimizer, or from one of its groups, what follows from the steps of a run, and returns it.
Json take_schedules(Json& of) {
  Json schedules = {{"learning_rate", member(of, "learning_rate")}};
  of.erase("learning_rate");
  for (auto& [name, options] : of.at("rule").items()) {
    for (const char* key : {"norm_interval_first", "norm_interval_growth", "norm_interval_over_steps"}) {
      schedules[key] = member(options, key);
      options.erase(key);
    }
  }
  return schedules;
}

// Compares rules like {"sgd": {"momentum": 0.9}}.
void compare_rules(const std::string& what, const Json& was, const Json& is, Differences& differ) {
  if (was.begin().key() != is.begin().key()) {
    return differ.add(what, was.begin().key(), is.begin().key());
  }
  compare_json(what + "." + was.begin().key(), was.begin().value(), is.begin().value(), differ);
}

bool compare_optimizers(Json was, Json is, Differences& differ) {
  const Json none = Json::array();
  Json groups_before = was.value("groups", none), groups_now = is.value("groups", none);
  bool schedules = take_schedules(was) != take_schedules(is);
  compare_rules("the optimizer", was.at("rule"), is.at("rule"), differ);
  differ.compare("the number of parameter groups", groups_before.size(), groups_now.size());
  for (std::size_t i = 0; i < std::min(groups_before.size(), groups_now.size()); ++i) {
    schedules = take_schedules(groups_before[i]) != take_schedules(groups_now[i]) || schedules;
    const std::string group = fmt::format("parameter group {}", i + 1);
    compare_json("what " + group + " takes", groups_before[i].at("takes"), groups_now[i].at("takes"), differ);
    compare_rules(group, groups_before[i].at("rule"), groups_now[i].at("rule"), differ);
  }
  const Json no_clip{{"max_norm", 0}, {"max_value", 0}};
  compare_json("clip", was.value("clip", no_clip), is.value("clip", no_clip), differ);
  compare_json("lookahead", member(was, "lookahead"), member(is, "lookahead"), differ);
  compare_json("the average of the weights", member(was, "average"), member(is, "average"), differ);
  return schedules;
}

std::string name_of_layer(const Json& layer) {
  return fmt::format("'{}' ({})", layer.at("name").get<std::string>(), layer.at("kind").get<std::string>());
}

void compare_layers(const Json& was, const Json& is, Differences& differ) {
  for (std::size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
    const std::string before = name_of_layer(was[i]), now = name_of_layer(is[i]);
    if (before != now) return differ.add(fmt::format("layer {} of the net", i + 1), before, now);
    compare_json("layer " + before, member(was[i], "attributes"), member(is[i], "attributes"), differ);
    compare_json("the inputs of layer " + before, member(was[i], "inputs"), member(is[i], "inputs"), differ);
    compare_json("whose variables layer " + before + " has", member(was[i], "variables_of"),
                 member(is[i], "variables_of"), differ);
  }
  differ.compare("the number of layers", was.size(), is.size());
}

}  // namespace

void Differences::add(const std::string& what, const std::string& was, const std::string& is) {
  texts_.push_back(fmt::format("{} was {}, is {}", what, was, is));
}

void Differences::require_none(const std::string& file) const {
  if (texts_.empty()) return;
  std::string text = fmt::format("the training in {} cannot go on as another one: ", file);
  for (std::size_t i = 0; i < std::min(size(), kMaxNamed); ++i) text += (i == 0 ? "" : "; ") + texts_[i];
  if (size() > kMaxNamed) text += fmt::format("; and {} more", size() - kMaxNamed);
  throw ConfigError(text, "continue it with what it was begun with, or begin another one in another folder");
}

void compare_graphs(const TensorFile& file, const Graph& graph, Differences& differ) {
  record_json::read_text(file, "graph", [&](const Json& was) {
    const Json is = record_json::parse(to_json(graph));
    compare_layers(was.at("layers"), is.at("layers"), differ);
    compare_json("the net's outputs", was.at("outputs"), is.at("outputs"), differ);
    return 0;
  });
}

bool compare_compiled(const TensorFile& file, const CompileOptions& options, Differences& differ) {
  return record_json::read_text(file, "compiled", [&](const Json& was) {
    const Json is = to_record_json(options);
    const bool schedules = compare_optimizers(was.at("optimizer"), is.at("optimizer"), differ);
    for (const char* what : {"loss", "metrics", "precision"})
      compare_json(what, was.at(what), is.at(what), differ);
    return schedules;
  });
}

}  // namespace headrace
