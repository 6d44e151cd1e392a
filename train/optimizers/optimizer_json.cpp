#include "headrace/train/optimizers/optimizer_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "headrace/train/net/attribute_json.h"
#include "headrace/train/optimizers.h"

namespace headrace {
namespace optimizer_json {
namespace {

struct UpdateWriter {
  Json operator()(const AdamOptions& options) const { return {{"adam", write_fields(options)}}; }
  Json operator()(const SgdOptions& options) const { return {{"sgd", write_fields(options)}}; }
  Json operator()(const MuonOptions& options) const { return {{"muon", write_fields(options)}}; }
  Json operator()(const CustomRule& own) const {
    if (own.function == nullptr) throw ConfigError("a custom update rule has no function");
    const Attributes attributes = own.function->attributes();
    Json written = Json::object();
    for (const auto& [name, value] : attributes.entries()) written[name] = attribute_to_json(value);
    return {{own.function->name(), written}};
  }
};

Json written_update(const UpdateRule& rule) { return std::visit(UpdateWriter{}, rule); }

Attributes attributes_of_rule(const Json& json, const std::string& place) {
  if (!json.is_object()) refuse(place, "expected an object, got " + json.dump());
  Attributes attributes;
  for (const auto& [name, value] : json.items()) {
    const auto attribute = attribute_from_json(value);
    if (!attribute) refuse(within(place, name), kNoAttribute);
    attributes.add(name, *attribute);
  }
  return attributes;
}

UpdateRule custom_rule_from(const UpdateMaker& make, const Json& json, const std::string& place) {
  try {
    return CustomRule(make(attributes_of_rule(json, place)));
  } catch (const ConfigError& error) {
    refuse(place, error.what());
  }
}

UpdateRule update_rule_from(const Json& json, const std::string& place, const UpdateMakers& own) {
  const auto [name, options] = choice(json, place);
  const std::string inside = within(place, name);
  if (name == "adam") return read_fields<AdamOptions>(options, inside);
  if (name == "sgd") return read_fields<SgdOptions>(options, inside);
  if (name == "muon") return read_fields<MuonOptions>(options, inside);
  if (const auto made = own.find(name); made != own.end()) return custom_rule_from(made->second, options, inside);
  refuse(place, "no rule is called '" + name + "', there are adam, sgd and muon",
         "if it is a custom one, hand over what makes it: {{\"" + name + "\", maker}}");
}

Json written_group(const ParameterGroup& group) {
  return {{"takes", written(group.takes)},
          {"rule", written_update(group.rule)},
          {"learning_rate", written(group.learning_rate)}};
}

ParameterGroup group_from(const Json& json, const std::string& place, const UpdateMakers& own) {
  FieldReader reader(json, place);
  for (const char* name : {"takes", "rule", "learning_rate"}) reader.know(name);
  reader.refuse_unknown();
  for (const char* name : {"takes", "rule"}) {
    if (!json.contains(name)) refuse(place, std::string("'") + name + "' is missing");
  }
  ParameterGroup group{.takes = variable_rule_from(json.at("takes"), within(place, "takes")),
                       .rule = update_rule_from(json.at("rule"), within(place, "rule"), own)};
  if (json.contains("learning_rate")) {
    group.learning_rate = schedule_from(json.at("learning_rate"), within(place, "learning_rate"));
  }
  return group;
}

Optimizer optimizer_from(const Json& json, const UpdateMakers& own) {
  FieldReader reader(json, "");
  for (const char* name : {"rule", "learning_rate", "groups", "clip", "lookahead", "average"}) reader.know(name);
  reader.refuse_unknown();
  Optimizer optimizer;
  if (json.contains("rule")) optimizer.rule = update_rule_from(json["rule"], "rule", own);
  if (json.contains("learning_rate")) {
    optimizer.learning_rate = schedule_from(json["learning_rate"], "learning_rate");
  }
  if (json.contains("groups")) {
    const Json& groups = json["groups"];
    if (!groups.is_array()) refuse("groups", "expected a list, got " + groups.dump());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      optimizer.groups.push_back(group_from(groups[i], fmt::format("groups[{}]", i), own));
    }
  }
  if (json.contains("clip")) optimizer.clip = read_fields<GradientClip>(json["clip"], "clip");
  if (json.contains("lookahead")) optimizer.lookahead = read_fields<Lookahead>(json["lookahead"], "lookahead");
  if (json.contains("average")) optimizer.average = read_fields<WeightAverage>(json["average"], "average");
  try {
    check_optimizer(optimizer);
  } catch (const ConfigError& error) {
    refuse("", error.message(), error.hint());
  }
  return optimizer;
}

std::vector<VariableRule> variable_rules_from(const Json& json, const std::string& place) {
  if (!json.is_array()) refuse(place, "expected a list of rules, got " + json.dump());
  std::vector<VariableRule> rules;
  for (std::size_t i = 0; i < json.size(); ++i) {
    rules.push_back(variable_rule_from(json[i], fmt::format("{}[{}]", place, i)));
  }
  return rules;
}

}  // namespace

Json written(const VariableRule& rule) {
  using Test = VariableRule::Test;
  if (rule.test() == Test::kName) return {{"name", rule.pattern()}};
  if (rule.test() == Test::kKind) return {{"kind", rule.pattern()}};
  if (rule.test() == Test::kRank) return {{"rank", rule.rank()}};
  if (rule.test() == Test::kNot) return {{"not", written(rule.rules().front())}};
  Json rules = Json::array();
  for (const VariableRule& each : rule.rules()) rules.push_back(written(each));
  return {{rule.test() == Test::kAll ? "all" : "any", rules}};
}

VariableRule variable_rule_from(const Json& json, const std::string& place) {
  const auto [test, of] = choice(json, place);
  const std::string inside = within(place, test);
  std::string pattern;
  int rank = 0;
  if (test == "rank") {
    read_value(of, inside, &rank);
    return VariableRule::of_rank(rank);
  }
  if (test == "all") return VariableRule::all_of(variable_rules_from(of, inside));
  if (test == "any") return VariableRule::any_of(variable_rules_from(of, inside));
  if (test == "not") return !variable_rule_from(of, inside);
  if (test != "name" && test != "kind") {
    refuse(place, "no rule of variables is called '" + test + "', there are name, kind, rank, all, any and not");
  }
  read_value(of, inside, &pattern);
  return test == "name" ? VariableRule::named(pattern) : VariableRule::of_kind(pattern);
}

}  // namespace optimizer_json

std::string to_json(const Optimizer& optimizer) {
  using namespace optimizer_json;
  Json json{{"rule", written_update(optimizer.rule)}, {"learning_rate", written(optimizer.learning_rate)}};
  if (!optimizer.groups.empty()) json["groups"] = Json::array();
  for (const ParameterGroup& group : optimizer.groups) json["groups"].push_back(written_group(group));
  if (optimizer.clip.on()) json["clip"] = write_fields(optimizer.clip);
  if (optimizer.lookahead) json["lookahead"] = write_fields(*optimizer.lookahead);
  if (optimizer.average) json["average"] = write_fields(*optimizer.average);
  return json.dump(2);
}

Optimizer optimizer_from_json(std::string_view json, const UpdateMakers& own) {
  using optimizer_json::Json;
  static constexpr int kMaxDepth = 100;  // reading recurses as deep as the text
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    if (depth <= kMaxDepth) return true;
    throw ConfigError(fmt::format("an optimizer's JSON is nested more than {} deep", kMaxDepth));
  };
  const Json parsed = Json::parse(json, shallow, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) throw ConfigError("an optimizer's JSON does not parse");
  return optimizer_json::optimizer_from(parsed, own);
}

}  // namespace headrace

// Converts schedules to and from JSON: a number is constant, {"cosine_decay": {...}} has a form.

namespace headrace::optimizer_json {
namespace {

struct FormWriter {
  Json operator()(const schedules::Constant& form) const { return number(form.rate); }
  Json operator()(const schedules::Decay& form) const {
    return {{form.cosine ? "cosine_decay" : "linear_decay", write_fields(form.options)}};
  }
  Json operator()(const PiecewiseOptions& form) const { return {{"piecewise", write_fields(form)}}; }
  Json operator()(const ExponentialOptions& form) const { return {{"exponential_decay", write_fields(form)}}; }
  Json operator()(const OneCycleOptions& form) const { return {{"one_cycle", write_fields(form)}}; }
  Json operator()(const schedules::WarmUp& form) const {
    return {{"warm_up", {{"steps", form.steps}, {"then", written(form.then.front())}}}};
  }
  Json operator()(const schedules::Chained& form) const {
    Json parts = Json::array();
    for (const Schedule& part : form.parts) parts.push_back(written(part));
    return {{"chained", {{"schedules", parts}, {"boundaries", form.boundaries}}}};
  }
};

const Json& required(const Json& json, const std::string& place, const char* name) {
  if (!json.contains(name)) refuse(place, std::string("'") + name + "' is missing");
  return json.at(name);
}

Schedule warm_up_from(const Json& json, const std::string& place) {
  FieldReader reader(json, place);
  std::uint64_t steps = 0;
  reader("steps", steps);
  reader.know("then");
  reader.refuse_unknown();
  return Schedule::warm_up(steps, schedule_from(required(json, place, "then"), within(place, "then")));
}

Schedule chained_from(const Json& json, const std::string& place) {
  FieldReader reader(json, place);
  std::vector<std::uint64_t> boundaries;
  reader("boundaries", boundaries);
  reader.know("schedules");
  reader.refuse_unknown();
  const Json& listed = required(json, place, "schedules");
  if (!listed.is_array()) refuse(within(place, "schedules"), "expected a list, got " + listed.dump());
  std::vector<Schedule> parts;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    parts.push_back(schedule_from(listed[i], fmt::format("{}.schedules[{}]", place, i)));
  }
  return Schedule::chained(std::move(parts), std::move(boundaries));
}

}  // namespace

Json written(const Schedule& schedule) { return std::visit(FormWriter{}, schedule.form()); }

Schedule schedule_from(const Json& json, const std::string& place) {
  if (json.is_number()) return static_cast<float>(json.get<double>());
  const auto [form, options] = choice(json, place);
  const std::string inside = within(place, form);
  if (form == "linear_decay") return Schedule::linear_decay(read_fields<DecayOptions>(options, inside));
  if (form == "cosine_decay") return Schedule::cosine_decay(read_fields<DecayOptions>(options, inside));
  if (form == "piecewise") return Schedule::piecewise(read_fields<PiecewiseOptions>(options, inside));
  if (form == "exponential_decay") {
    return Schedule::exponential_decay(read_fields<ExponentialOptions>(options, inside));
  }
  if (form == "one_cycle") return Schedule::one_cycle(read_fields<OneCycleOptions>(options, inside));
  if (form == "warm_up") return warm_up_from(options, inside);
  if (form == "chained") return chained_from(options, inside);
  refuse(place,
         "no schedule is called '" + form +
             "', there are linear_decay, cosine_decay, piecewise, exponential_decay, one_cycle, warm_up and "
             "chained");
}

// Options as members of a JSON object.

namespace {

struct ValueWriter {
  template <typename Value>
  Json operator()(const Value* value) const {
    return *value;
  }
  Json operator()(const float* value) const { return number(*value); }
  Json operator()(const std::vector<float>* values) const {
    Json list = Json::array();
    for (const float value : *values) list.push_back(number(value));
    return list;
  }
};

struct ValueReader {
  const Json& json;
  const std::string& place;

  void operator()(bool* value) const { read(value, json.is_boolean(), "true or false"); }
  void operator()(std::string* value) const { read(value, json.is_string(), "a string"); }
  void operator()(std::filesystem::path* value) const { read(value, json.is_string(), "a path"); }
  template <typename Number>
  requires std::is_floating_point_v<Number>
  void operator()(Number* value) const {
    want(json.is_number(), "a number");
    *value = static_cast<Number>(json.get<double>());
  }
  template <typename Number>
  requires std::is_integral_v<Number>
  void operator()(Number* value) const {
    const bool fits = json.is_number_unsigned()  ? std::in_range<Number>(json.get<std::uint64_t>())
                      : json.is_number_integer() ? std::in_range<Number>(json.get<std::int64_t>())
                                                 : false;
    read(value, fits, "a whole number in range");
  }
  template <typename Item>
  void operator()(std::vector<Item>* values) const {
    want(json.is_array(), "a list");
    values->clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      read_value(json[i], fmt::format("{}[{}]", place, i), &values->emplace_back());
    }
  }

 private:
  void want(bool is, const char* what) const {
    if (!is) refuse(place, fmt::format("expected {}, got {}", what, json.dump()));
  }
  template <typename Value>
  void read(Value* value, bool is, const char* what) const {
    want(is, what);
    *value = json.get<Value>();
  }
};

}  // namespace

Json number(float value) {
  if (!std::isfinite(value))
    throw ConfigError(fmt::format("an optimizer with the value {} cannot be written", value));
  char digits[32];
  const std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), value);
  return Json::parse(std::begin(digits), end.ptr);
}

void FieldWriter::visit(const char* name, OptionPlace place) { json[name] = std::visit(ValueWriter{}, place); }

void FieldReader::visit(const char* name, OptionPlace place) {
  know(name);
  if (json_.contains(name)) read_value(json_.at(name), within(place_, name), place);
}

void FieldReader::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  know(name);
  if (!json_.contains(name)) return;
  const auto found = std::ranges::find_if(choices, [&](const char* choice) { return json_.at(name) == choice; });
  if (found == choices.end()) {
    refuse(within(place_, name),
           fmt::format("expected one of {}, got {}", fmt::join(choices, ", "), json_.at(name).dump()));
  }
  number = static_cast<std::size_t>(found - choices.begin());
}

void FieldReader::refuse_unknown() const {
  for (const auto& [key, value] : json_.items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    refuse(within(place_, key), fmt::format("there is no such key, there are {}", fmt::join(known_, ", ")));
  }
}

void read_value(const Json& json, const std::string& place, OptionPlace value) {
  std::visit(ValueReader{.json = json, .place = place}, value);
}

}  // namespace headrace::optimizer_json
