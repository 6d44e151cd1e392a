#include "headrace/train/records/record_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/net/attribute_json.h"

namespace headrace::record_json {
namespace {

constexpr int kMaxTextDepth = 64;  // reading recurses as deep as the text

}  // namespace

Json parse(std::string_view text) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    if (depth <= kMaxTextDepth) return true;
    throw ConfigError(fmt::format("JSON is nested more than {} deep", kMaxTextDepth));
  };
  return Json::parse(text, shallow);
}

void refuse_text(const TensorFile& file, const std::string& name, const std::string& why,
                 const std::string& hint) {
  throw DataError(
      ErrorCode::kDataCorrupt, fmt::format("'{}' in its header is wrong: {}", name, why),
      {.source = file.path().string()},
      hint.empty() ? "use another checkpoint, or save the model again with the program that made it" : hint);
}

}  // namespace headrace::record_json

namespace headrace {
namespace {

using record_json::Json;

Json function_to_json(const std::string& kind, const std::optional<Attributes>& attributes) {
  Json json{{"name", kind}};
  if (!attributes) return json;
  json["options"] = Json::object();
  for (const auto& [name, value] : attributes->entries()) json["options"][name] = attribute_to_json(value);
  return json;
}

template <typename Named>
Json labels_to_json(Json json, const Named& named) {
  if (!named.label_field.empty()) json["label_field"] = named.label_field;
  if (!named.result.empty()) json["result"] = named.result;
  return json;
}

template <typename Named>
void read_labels(const Json& json, Named& named) {
  named.label_field = json.value("label_field", "");
  named.result = json.value("result", "");
}

[[noreturn]] void refuse_function(const std::string& what, const std::string& name) {
  throw ConfigError(fmt::format("the record was made with a custom {}, '{}'", what, name),
                    joined({advice("hand it over in {}",
                                   what == "loss" ? named("CustomParts::losses") : named("CustomParts::metrics")),
                            "evaluate the record in the program that made it"}));
}

// Returns what the kind of this name makes of the record's options; std::nullopt if there is no such kind or the
// record has no options.
template <typename Kinds>
auto built_in(const Kinds& kinds, const Json& json) {
  using Made = decltype(kinds.front().make(std::declval<OptionVisitor&>()));
  const auto kind = std::ranges::find(kinds, json.at("name").get<std::string>(), &Kinds::value_type::name);
  if (kind == kinds.end() || !json.contains("options")) return std::optional<Made>();
  Attributes attributes;
  for (const auto& [name, value] : json.at("options").items()) {
    const auto attribute = attribute_from_json(value);
    if (!attribute) throw ConfigError(fmt::format("{} of {}: {}", name, kind->name, kNoAttribute));
    attributes.add(name, *attribute);
  }
  std::optional<Made> made;
  read_attributes(attributes, 0, [&](OptionVisitor& visit) { made = kind->make(visit); });
  return made;
}

// Returns the function of this name in `own` if the record has no options for it.
std::shared_ptr<const LossFunction> loss_function(const Json& json, const std::vector<Loss>& own) {
  const std::string name = json.at("name").get<std::string>();
  if (const auto made = built_in(loss_kinds(), json)) return made->terms.front().function;
  for (const Loss& loss : own) {
    if (loss.terms.size() == 1 && loss.terms.front().function->name() == name) return loss.terms.front().function;
  }
  refuse_function("loss", name);
}

Loss loss_from(const Json& json, const std::vector<Loss>& own) {
  Loss loss;
  loss.reduction = json.at("reduction").get<std::string>() == "sum" ? Reduction::kSum : Reduction::kMean;
  for (const Json& each : json.at("terms")) {
    LossTerm term{.function = loss_function(each, own), .weight = each.at("weight").get<float>()};
    read_labels(each, term);
    term.weight_field = each.value("weight_field", "");
    term.class_weights = each.value("class_weights", std::vector<float>{});
    if (each.contains("task")) term.task = task_named(each.at("task").get<std::string>());
    if (each.contains("from_logits")) term.from_logits = each.at("from_logits").get<bool>();
    loss.terms.push_back(std::move(term));
  }
  return loss;
}

Json loss_to_json(const Loss& loss) {
  Json terms = Json::array();
  for (const LossTerm& term : loss.terms) {
    terms.push_back(labels_to_json(function_to_json(term.function->name(), term.function->attributes()), term));
    terms.back()["weight"] = term.weight;
    if (!term.weight_field.empty()) terms.back()["weight_field"] = term.weight_field;
    if (!term.class_weights.empty()) terms.back()["class_weights"] = term.class_weights;
    if (term.task) terms.back()["task"] = to_text(*term.task);
    if (term.from_logits) terms.back()["from_logits"] = *term.from_logits;
  }
  return {{"reduction", loss.reduction == Reduction::kSum ? "sum" : "mean"}, {"terms", terms}};
}

Metric metric_from(const Json& json, const std::vector<Metric>& own) {
  const std::string name = json.at("name").get<std::string>();
  std::optional<Metric> metric = built_in(metric_kinds(), json);
  if (!metric) {
    if (const auto loss = built_in(loss_kinds(), json)) metric = Metric(*loss);
  }
  for (const Metric& each : own) {
    if (!metric && each.function->name() == name) metric = each;
  }
  if (!metric) refuse_function("metric", name);
  read_labels(json, *metric);
  metric->is_weighted = json.value("weighted", false);
  return *metric;
}

}  // namespace

Json to_record_json(const CompileOptions& options) {
  Json metrics = Json::array();
  for (const Metric& metric : options.metrics) {
    metrics.push_back(
        labels_to_json(function_to_json(metric.function->kind(), metric.function->attributes()), metric));
    if (metric.is_weighted) metrics.back()["weighted"] = true;
  }
  return {{"optimizer", record_json::parse(to_json(options.optimizer))},
          {"loss", loss_to_json(options.loss)},
          {"metrics", metrics},
          {"precision", options.precision == Precision::kBF16 ? "bf16" : "f32"}};
}

CompileOptions compile_options_from(const Json& json, const CustomParts& own) {
  CompileOptions options{
      .optimizer = optimizer_from_json(json.at("optimizer").dump(), own.rules),
      .loss = loss_from(json.at("loss"), own.losses),
      .metrics = {},
      .precision = json.at("precision").get<std::string>() == "bf16" ? Precision::kBF16 : Precision::kF32};
  for (const Json& metric : json.at("metrics")) options.metrics.push_back(metric_from(metric, own.metrics));
  return options;
}

}  // namespace headrace
