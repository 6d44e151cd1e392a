// Reads values from files that a run, or somebody else, wrote: an absent value or one of another kind is no value.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace headrace::tools {

// Larger figures of a run are meaningless, and charts would overflow.
inline constexpr double kMaxFigure = 1e100;

inline std::optional<double> number_of(const nlohmann::json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::abs(number) <= kMaxFigure ? std::optional(number) : std::nullopt;
}

inline std::optional<double> number_at(const nlohmann::json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  return number_of(object[key]);
}

// Returns an empty string if there is none.
inline std::string text_at(const nlohmann::json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
  return object[key].get<std::string>();
}

}  // namespace headrace::tools
