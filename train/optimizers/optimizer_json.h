// Converts options to and from JSON objects, both from one list of their fields. Private to this folder.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/train/optimizers.h"

namespace headrace::optimizer_json {

using Json = nlohmann::ordered_json;

Json written(const Schedule& schedule);
Json written(const VariableRule& rule);
// `place` is named in errors: "groups[1].learning_rate".
Schedule schedule_from(const Json& json, const std::string& place);
VariableRule variable_rule_from(const Json& json, const std::string& place);

[[noreturn]] inline void refuse(const std::string& place, const std::string& why, const std::string& hint = {}) {
  throw ConfigError(fmt::format("an optimizer's JSON is wrong at {}: {}", place.empty() ? "its top" : place, why),
                    hint);
}

inline std::string within(const std::string& place, const std::string& name) {
  return place.empty() ? name : place + "." + name;
}

// Returns the object's only entry: {"adam": {...}} is a choice called "adam".
inline std::pair<std::string, Json> choice(const Json& json, const std::string& place) {
  if (json.is_object() && json.size() == 1) return {json.begin().key(), json.begin().value()};
  refuse(place, "expected an object with one key, got " + json.dump());
}

// Returns a number with the fewest digits that distinguish it from its neighbours.
Json number(float value);

// Writes the options that it visits.
class FieldWriter final : public OptionVisitor {
 public:
  Json json = Json::object();

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override {
    json[name] = choices[number];
  }
};

// Reads the options that it visits, if the object has them.
class FieldReader final : public OptionVisitor {
 public:
  FieldReader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) refuse(place_, "expected an object, got " + json.dump());
  }

  // Declares a key that is read elsewhere.
  void know(const char* name) { known_.emplace_back(name); }
  // Throws ConfigError for an unknown key. REQUIRES: all options were visited and all other keys declared.
  void refuse_unknown() const;

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;

 private:
  const Json& json_;
  std::string place_;
  std::vector<std::string> known_;
};

// Reads one value.
void read_value(const Json& json, const std::string& place, OptionPlace value);

template <typename Options>
Json write_fields(Options options) {
  FieldWriter writer;
  show(options, writer);
  return std::move(writer.json);
}

template <typename Options>
Options read_fields(const Json& json, const std::string& place) {
  Options options;
  FieldReader reader(json, place);
  show(options, reader);
  reader.refuse_unknown();
  return options;
}

}  // namespace headrace::optimizer_json
