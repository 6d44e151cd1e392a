// A value in a plan's JSON with its place: what is wrong there is a ConfigError that names it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace::plan_json {

// Already names the place.
class PlaceError final : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

// A view: the JSON must outlive it. The path is made of names that the format has, never of the text's own.
class JsonPlace {
 public:
  // The whole plan.
  explicit JsonPlace(const nlohmann::json& value) : value_(&value) {}

  const nlohmann::json& value() const noexcept { return *value_; }
  // "stages[3].map[1].flip"
  const std::string& path() const noexcept { return path_; }

  // Of an object; `name` must be there.
  JsonPlace member(std::string_view name) const;
  bool has(std::string_view name) const;
  // The items of a list; PlaceError where it is none.
  std::vector<JsonPlace> items() const;

  // PlaceError where it is no object.
  void want_object() const;
  // PlaceError where it has a member that is none of these.
  void want_only(const std::vector<std::string>& known) const;
  // The one member that an object says what it is by. `what` for messages: "a stage".
  std::string only_name(const char* what) const;
  // PlaceError where it is no text.
  std::string text() const;

  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const;
  // What stands there, cut short: "\"four\"", "-3", "a list".
  std::string shown() const;

 private:
  JsonPlace(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const nlohmann::json* value_;
  std::string path_;
};

// A text of the plan's author in a message: quoted, without control characters, cut short.
std::string in_quotes(std::string_view text);
// "a, b or c"
std::string one_of(std::vector<std::string> names);

}  // namespace headrace::plan_json
