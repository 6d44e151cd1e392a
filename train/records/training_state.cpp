#include "headrace/train/records/training_state.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "headrace/devices/base/error.h"
#include "headrace/train/records/record_json.h"

namespace headrace {
namespace {

using record_json::Json;

constexpr const char* kTraining = "training";
constexpr const char* kHistory = "history";
constexpr const char* kCallbacks = "callbacks";

// JSON cannot represent numbers that are not finite: null is NaN.
Json number_to_json(double value) { return std::isfinite(value) ? Json(value) : Json(); }
double number_from(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

Json numbers_to_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number_to_json(value));
  return list;
}

Json history_to_json(const History& history) {
  Json lists = Json::object();
  for (const auto& [name, values] : history.lists()) lists[name] = numbers_to_json(values);
  return lists;
}

History history_from(const Json& json) {
  History history;
  for (const auto& [name, values] : json.items()) {
    for (const Json& value : values) {
      history.append(name, number_from(value));
    }
  }
  return history;
}

Json norms_to_json(const GradientNorms& norms) {
  Json list = Json::array();
  for (const auto& [variable, norm] : norms.by_variable) list.push_back({variable, number_to_json(norm)});
  return {{"all", number_to_json(norms.all)}, {"by_variable", list}};
}

GradientNorms norms_from(const Json& json) {
  GradientNorms norms{.all = number_from(json.at("all"))};
  for (const Json& each : json.at("by_variable")) {
    norms.by_variable.emplace_back(each.at(0).get<std::string>(), number_from(each.at(1)));
  }
  return norms;
}

Json identity_to_json(const DataIdentity& data) {
  return {{"fingerprint", data.fingerprint}, {"stages", data.stages}};
}

DataIdentity identity_from(const Json& json) {
  return {.fingerprint = json.at("fingerprint").get<std::uint64_t>(),
          .stages = json.at("stages").get<std::vector<std::string>>()};
}

Json position_to_json(const TrainingPosition& at) {
  Json json{{"epoch", at.epoch},
            {"epoch_step", at.epoch_step},
            {"epochs", at.epochs},
            {"ended", at.ended},
            {"steps_per_epoch", at.steps_per_epoch},
            {"accumulate", at.accumulate},
            {"replicas", at.world_replicas},
            {"virtual_shards", at.virtual_shards},
            {"seed", at.seed},
            {"loader", at.loader.serialize()},
            {"bad_records", at.bad_records},
            {"learning_rate_scale", at.learning_rate_scale},
            {"run", at.run}};
  if (at.validation) json["validation"] = at.validation->serialize();
  if (at.best) json["best"] = *at.best;
  if (!at.best_of.empty()) json["best_of"] = at.best_of;
  if (at.on_error) json["on_error"] = to_string(*at.on_error);
  if (at.data) json["data"] = identity_to_json(*at.data);
  if (at.validation_data) json["validation_data"] = identity_to_json(*at.validation_data);
  if (at.gradient_norms) json["gradient_norms"] = norms_to_json(*at.gradient_norms);
  if (!at.plans.empty()) json["plans"] = at.plans;
  return json;
}

TrainingPosition position_from(const Json& json) {
  TrainingPosition at{.epoch = json.at("epoch").get<int>(),
                      .epoch_step = json.at("epoch_step").get<std::uint64_t>(),
                      .epochs = json.at("epochs").get<int>(),
                      .ended = json.at("ended").get<bool>(),
                      .steps_per_epoch = json.at("steps_per_epoch").get<std::uint64_t>(),
                      .accumulate = json.at("accumulate").get<int>(),
                      .world_replicas = json.at("replicas").get<int>(),
                      .virtual_shards = json.at("virtual_shards").get<int>(),
                      .seed = json.at("seed").get<std::uint64_t>(),
                      .loader = LoaderState::parse(json.at("loader").get<std::string>()),
                      .bad_records = json.at("bad_records").get<std::uint64_t>(),
                      .learning_rate_scale = json.at("learning_rate_scale").get<double>(),
                      .run = json.at("run").get<std::string>()};
  if (json.contains("validation")) at.validation = LoaderState::parse(json["validation"].get<std::string>());
  if (json.contains("best")) at.best = json["best"].get<double>();
  at.best_of = json.value("best_of", "");
  if (json.contains("on_error")) at.on_error = parse_on_error(json["on_error"].get<std::string>());
  if (json.contains("data")) at.data = identity_from(json["data"]);
  if (json.contains("validation_data")) at.validation_data = identity_from(json["validation_data"]);
  if (json.contains("gradient_norms")) at.gradient_norms = norms_from(json["gradient_norms"]);
  if (json.contains("plans")) at.plans = json["plans"].get<std::map<std::string, std::string>>();
  return at;
}

std::vector<std::vector<std::byte>> read_totals(const TensorFile& file) {
  std::vector<std::vector<std::byte>> totals;
  while (const StoredTensor* tensor = file.find(totals_name(totals.size()))) {
    totals.emplace_back(tensor->bytes);
    file.read(*tensor, totals.back());
  }
  return totals;
}

}  // namespace

DataIdentity identity_of(const Dataset& data) {
  DataIdentity identity{.fingerprint = data.fingerprint()};
  std::istringstream plan(data.explain());
  for (std::string line; std::getline(plan, line);) {
    if (line.starts_with(' ') || line.starts_with("cache(") || line.starts_with("prefetch(")) continue;
    identity.stages.push_back(line.substr(0, line.find("  [")));
  }
  return identity;
}

std::string totals_name(std::size_t shard) { return "totals:" + std::to_string(shard); }

void add_texts(const TrainingState& state, RecordTexts& texts) {
  texts[kTraining] = position_to_json(state.position).dump();
  texts[kHistory] = history_to_json(state.history).dump();
  texts[kCallbacks] = state.callbacks;
}

std::optional<TrainingState> read_training_state(const TensorFile& file) {
  if (!file.has_text(kTraining)) return std::nullopt;
  TrainingState state;
  state.position = record_json::read_text(file, kTraining, position_from);
  state.history = record_json::read_text(file, kHistory, history_from);
  state.callbacks = file.text(kCallbacks);
  state.totals = read_totals(file);
  return state;
}

}  // namespace headrace
