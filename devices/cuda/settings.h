// What the environment says to the CUDA backend. Private to it.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace {

// Returns the whole number that the variable holds; `usual` if it is unset or empty. Throws ConfigError for
// anything else; `unit` as in "seconds".
inline int environment_number(const char* variable, int usual, int min, int max, const std::string& unit) {
  const char* const value = std::getenv(variable);
  const std::string_view text = value == nullptr ? std::string_view() : value;
  if (text.empty()) return usual;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < min || number > max) {
    throw ConfigError(
        std::string(variable) + " is '" + std::string(text) + "'",
        "it must be a number of " + unit + " from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return number;
}

// Returns how long replicas wait for one another.
inline std::chrono::seconds collective_timeout() {
  return std::chrono::seconds(environment_number("HEADRACE_COLLECTIVE_TIMEOUT", 30, 1, 86400, "seconds"));
}

// Returns how long a thread that waits for a GPU polls before it sleeps: about as long as it takes to be woken, so
// that a wait costs at most twice what the better of both would.
inline std::chrono::microseconds polling_time() {
  return std::chrono::microseconds(
      environment_number("HEADRACE_CUDA_POLL_US", 50, 0, 1'000'000'000, "microseconds"));
}

}  // namespace headrace
