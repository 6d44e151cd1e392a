// Options as JSON objects, both ways from one list of their fields. Private to the room.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers/option_fields.h"

namespace headrace::optimizer_json {

using Json = nlohmann::ordered_json;

Json written(const Schedule& schedule);
Json written(const VariableRule& rule);
// `place` stands in errors: "groups[1].learning_rate".
Schedule schedule_from(const Json& json, const std::string& place);
VariableRule variable_rule_from(const Json& json, const std::string& place);

[[noreturn]] inline void refuse(const std::string& place, const std::string& why, const std::string& hint = {}) {
  throw ConfigError(fmt::format("an optimizer's JSON is wrong at {}: {}", place.empty() ? "its top" : place, why),
                    hint);
}

inline std::string within(const std::string& place, const std::string& name) {
  return place.empty() ? name : place + "." + name;
}

// The object's only entry: {"adam": {...}} is a choice called "adam".
inline std::pair<std::string, Json> choice(const Json& json, const std::string& place) {
  if (json.is_object() && json.size() == 1) return {json.begin().key(), json.begin().value()};
  refuse(place, "expected an object with one key, got " + json.dump());
}

// A number with as few digits as tell it from its neighbours.
inline Json number(float value) {
  if (!std::isfinite(value))
    throw ConfigError(fmt::format("an optimizer with the value {} cannot be written", value));
  char digits[32];
  const std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), value);
  return Json::parse(std::begin(digits), end.ptr);
}

template <typename T>
Json value_of(const T& field) {
  if constexpr (std::is_same_v<T, float>) {
    return number(field);
  } else if constexpr (std::is_same_v<T, std::vector<float>>) {
    Json values = Json::array();
    for (const float value : field) values.push_back(number(value));
    return values;
  } else {
    return field;
  }
}

template <typename T>
void read_value(const Json& json, const std::string& place, T& field) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) refuse(place, "expected true or false, got " + json.dump());
    field = json.get<bool>();
  } else if constexpr (std::is_same_v<T, float>) {
    if (!json.is_number()) refuse(place, "expected a number, got " + json.dump());
    field = static_cast<float>(json.get<double>());
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) refuse(place, "expected a string, got " + json.dump());
    field = json.get<std::string>();
  } else if constexpr (std::is_integral_v<T>) {
    const bool fits =
        json.is_number_integer() && (json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                               : std::in_range<T>(json.get<std::int64_t>()));
    if (!fits) refuse(place, "expected a whole number in range, got " + json.dump());
    field = json.get<T>();
  } else {  // a vector
    if (!json.is_array()) refuse(place, "expected a list, got " + json.dump());
    field.clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      read_value(json[i], fmt::format("{}[{}]", place, i), field.emplace_back());
    }
  }
}

// What visit_fields() is called with.
class FieldWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& field) {
    json[name] = value_of(field);
  }

  Json json = Json::object();
};

class FieldReader {
 public:
  FieldReader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) refuse(place_, "expected an object, got " + json.dump());
  }

  template <typename T>
  void operator()(const char* name, T& field) {
    known_.emplace_back(name);
    if (json_.contains(name)) read_value(json_.at(name), within(place_, name), field);
  }
  // After all fields, or before them for those that are read elsewhere.
  void know(const char* name) { known_.emplace_back(name); }
  void refuse_unknown() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::find(known_, key) != known_.end()) continue;
      std::string names;
      for (const std::string& name : known_) names += (names.empty() ? "" : ", ") + name;
      refuse(within(place_, key), "there is no such key, there are " + names);
    }
  }

 private:
  const Json& json_;
  std::string place_;
  std::vector<std::string> known_;
};

template <typename Options>
Json write_fields(const Options& options) {
  FieldWriter writer;
  visit_fields(writer, options);
  return std::move(writer.json);
}

template <typename Options>
Options read_fields(const Json& json, const std::string& place) {
  Options options;
  FieldReader reader(json, place);
  visit_fields(reader, options);
  reader.refuse_unknown();
  return options;
}

}  // namespace headrace::optimizer_json
