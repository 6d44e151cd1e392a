// How long a replica waits for the others. Private to the CUDA backend.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace {

// Returns HEADRACE_COLLECTIVE_TIMEOUT, from 1 to 86400 seconds; 30 if unset. Throws ConfigError for anything else.
inline std::chrono::seconds collective_timeout() {
  const char* variable = std::getenv("HEADRACE_COLLECTIVE_TIMEOUT");
  const std::string_view text = variable == nullptr ? std::string_view() : variable;
  if (text.empty()) return std::chrono::seconds(30);
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 1 || seconds > 86400) {
    throw ConfigError("HEADRACE_COLLECTIVE_TIMEOUT is '" + std::string(text) + "'",
                      "it must be a number of seconds from 1 to 86400");
  }
  return std::chrono::seconds(seconds);
}

}  // namespace headrace
