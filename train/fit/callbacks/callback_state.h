// A callback's state as JSON text.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {

// Calls read(json). Throws ConfigError naming the callback if the state is not as expected.
template <typename Read>
void read_callback_state(const std::string& who, const std::string& text, const Read& read) {
  try {
    read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("the state of {} cannot be read: {}", who, error.what()),
                      "resume from another checkpoint, or without this callback");
  }
}

inline nlohmann::json optional_number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

inline std::optional<double> optional_number(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

}  // namespace headrace
