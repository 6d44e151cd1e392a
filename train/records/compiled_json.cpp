#include "headrace/train/records/compiled_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/objectives/metrics/class_averages.h"

namespace headrace {
namespace {

using record_json::Json;

constexpr std::string_view kTopK = "top_";

// Returns the name and options of a loss's or metric's function.
template <typename Function>
Json function_to_json(const Function& function) {
  Json json{{"name", function.name()}};
  const std::string options = function.options_json();
  if (!options.empty()) json["options"] = record_json::parse(options);
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
  throw ConfigError(fmt::format("the record was made with a {} of its program's own, '{}'", what, name),
                    joined({advice("hand it over in {}",
                                   what == "loss" ? named("OwnParts::losses") : named("OwnParts::metrics")),
                            "evaluate the record in the program that made it"}));
}

std::optional<Loss> built_in_loss(const std::string& name, const Json& options) {
  const auto cross_entropy = [&] {
    return CrossEntropyOptions{.from_logits = options.at("from_logits").get<bool>(),
                               .label_smoothing = options.at("label_smoothing").get<float>()};
  };
  if (name == "sparse_categorical_crossentropy") return sparse_categorical_crossentropy(cross_entropy());
  if (name == "categorical_crossentropy") return categorical_crossentropy(cross_entropy());
  if (name == "mean_squared_error") return mean_squared_error();
  if (name == "mean_absolute_error") return mean_absolute_error();
  if (name == "huber") return huber();
  if (name == "hinge") return hinge();
  if (name == "cosine_similarity") return cosine_similarity();
  if (name == "kl_divergence") return kl_divergence();
  if (name != "binary_crossentropy") return std::nullopt;
  return binary_crossentropy({.from_logits = options.at("from_logits").get<bool>(),
                              .label_smoothing = options.value("label_smoothing", 0.0F)});
}

// Returns the function of this name in `own` if the record has no options for it.
std::shared_ptr<const LossFunction> loss_function(const Json& json, const std::vector<Loss>& own) {
  const std::string name = json.at("name").get<std::string>();
  if (json.contains("options")) {
    if (const auto made = built_in_loss(name, json.at("options"))) return made->terms.front().function;
  }
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
    terms.push_back(labels_to_json(function_to_json(*term.function), term));
    terms.back()["weight"] = term.weight;
    if (!term.weight_field.empty()) terms.back()["weight_field"] = term.weight_field;
    if (!term.class_weights.empty()) terms.back()["class_weights"] = term.class_weights;
    if (term.task) terms.back()["task"] = to_text(*term.task);
    if (term.from_logits) terms.back()["from_logits"] = *term.from_logits;
  }
  return {{"reduction", loss.reduction == Reduction::kSum ? "sum" : "mean"}, {"terms", terms}};
}

ClassScoreOptions score_options(const Json& options) {
  ClassScoreOptions made{.average = average_named(options.at("average").get<std::string>())};
  if (!options.at("threshold").is_null()) made.threshold = options.at("threshold").get<float>();
  return made;
}

Metric area_from(AucCurve curve, const Json& options) {
  return auc({.curve = curve,
              .thresholds = options.at("thresholds").get<int>(),
              .average = average_named(options.at("average").get<std::string>())});
}

std::optional<Metric> built_in_metric(const std::string& name, const Json& options) {
  if (name == "accuracy") return accuracy();
  if (name == "binary_accuracy") return binary_accuracy();
  if (name == "confusion_matrix") return confusion_matrix();
  if (name == "precision") return precision(score_options(options));
  if (name == "recall") return recall(score_options(options));
  if (name == "f1_score") return f1_score(score_options(options));
  if (name == "auc") return area_from(AucCurve::kRoc, options);
  if (name == "pr_auc") return area_from(AucCurve::kPrecisionRecall, options);
  if (const auto loss = built_in_loss(name, options)) return Metric(*loss);
  int k = 0;
  if (!name.starts_with(kTopK)) return std::nullopt;
  std::from_chars(name.data() + kTopK.size(), name.data() + name.size(), k);
  return top_k(k);
}

Metric metric_from(const Json& json, const std::vector<Metric>& own) {
  const std::string name = json.at("name").get<std::string>();
  std::optional<Metric> metric;
  if (json.contains("options")) metric = built_in_metric(name, json.at("options"));
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
    metrics.push_back(labels_to_json(function_to_json(*metric.function), metric));
    if (metric.is_weighted) metrics.back()["weighted"] = true;
  }
  return {{"optimizer", record_json::parse(to_json(options.optimizer))},
          {"loss", loss_to_json(options.loss)},
          {"metrics", metrics},
          {"precision", options.precision == Precision::kBF16 ? "bf16" : "f32"}};
}

CompileOptions compile_options_from(const Json& json, const OwnParts& own) {
  CompileOptions options{
      .optimizer = optimizer_from_json(json.at("optimizer").dump(), own.rules),
      .loss = loss_from(json.at("loss"), own.losses),
      .metrics = {},
      .precision = json.at("precision").get<std::string>() == "bf16" ? Precision::kBF16 : Precision::kF32};
  for (const Json& metric : json.at("metrics")) options.metrics.push_back(metric_from(metric, own.metrics));
  return options;
}

}  // namespace headrace
