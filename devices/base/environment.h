// Numbers in environment variables.
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace {

// Returns the whole number in the variable, or `fallback` if it is unset or empty. Throws ConfigError for anything
// else; `unit` as in "seconds".
inline int environment_number(const char* variable, int fallback, int min, int max, const std::string& unit) {
  const char* const value = std::getenv(variable);
  const std::string_view text = value == nullptr ? std::string_view() : value;
  if (text.empty()) return fallback;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < min || number > max) {
    throw ConfigError(
        std::string(variable) + " is '" + std::string(text) + "'",
        "it must be a number of " + unit + " from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return number;
}

}  // namespace headrace
