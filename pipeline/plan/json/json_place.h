// A value in a plan's JSON with its place, which the ConfigErrors about it name.
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

// A ConfigError that already names the place.
class PlaceError final : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

// A view. The path consists of names of the format, never of the text's own. REQUIRES: the JSON outlives it.
class JsonPlace {
 public:
  // The whole of `whole`, a literal: "plan".
  explicit JsonPlace(const nlohmann::json& value, const char* whole = "plan") : whole_(whole), value_(&value) {}

  const nlohmann::json& value() const noexcept { return *value_; }
  // Returns a path such as "stages[3].map[1].flip".
  const std::string& path() const noexcept { return path_; }

  // Returns a member of an object. REQUIRES: `name` exists.
  JsonPlace member(std::string_view name) const;
  bool has(std::string_view name) const;
  // Returns the items of a list. Throws PlaceError if it is not a list.
  std::vector<JsonPlace> items() const;

  // Throws PlaceError if it is not an object.
  void want_object() const;
  // Throws PlaceError if it has a member that is not in `known`.
  void want_only(const std::vector<std::string>& known) const;
  // Returns the name of an object's only member, which tells its kind. `what` is for messages: "a stage".
  std::string only_name(const char* what) const;
  // Throws PlaceError if it is not a string.
  std::string text() const;

  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const;
  // Returns a short form of the value: "\"four\"", "-3", "a list".
  std::string shown() const;

 private:
  JsonPlace(const char* whole, const nlohmann::json& value, std::string path)
      : whole_(whole), value_(&value), path_(std::move(path)) {}

  const char* whole_;
  const nlohmann::json* value_;
  std::string path_;
};

// Formats a text of the plan's author for a message: quoted, without control characters, shortened.
std::string in_quotes(std::string_view text);
// Returns "a, b or c".
std::string one_of(std::vector<std::string> names);

}  // namespace headrace::plan_json
