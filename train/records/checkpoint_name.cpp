#include "headrace/train/records/checkpoint_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {
namespace {

[[noreturn]] void refuse_name(const std::string& pattern, const std::string& why, const std::string& hint = {}) {
  throw ConfigError(fmt::format("the name of checkpoints, '{}', {}", pattern, why), hint);
}

std::string number_text(double value, const std::string& format) {
  const auto whole = static_cast<long long>(value);
  if (format.empty() && static_cast<double>(whole) == value) return fmt::format("{}", whole);
  return fmt::format(fmt::runtime("{:" + format + "}"), value);
}

// Returns the text for a placeholder, given without its braces.
std::string place_text(const std::string& pattern, const std::string& place, const NameValues& values) {
  const std::size_t colon = place.find(':');
  const std::string name = place.substr(0, colon);
  const auto found = std::ranges::find(values, name, &NameValues::value_type::first);
  if (found == values.end()) {
    std::string names;
    for (const auto& [each, value] : values) names += (names.empty() ? "" : ", ") + each;
    refuse_name(pattern, "asks for {" + name + "}", "there are " + names);
  }
  if (!found->second) return "none";
  try {
    return number_text(*found->second, colon == std::string::npos ? "" : place.substr(colon + 1));
  } catch (const fmt::format_error& error) {
    refuse_name(pattern, fmt::format("has the format '{}': {}", place, error.what()));
  }
}

}  // namespace

std::string checkpoint_name(const std::string& pattern, const NameValues& values) {
  std::string name;
  std::size_t at = 0;
  while (at < pattern.size()) {
    const std::size_t open = pattern.find_first_of("{}", at);
    name += pattern.substr(at, open - at);
    if (open == std::string::npos) break;
    const std::size_t close = pattern[open] == '{' ? pattern.find('}', open) : std::string::npos;
    if (close == std::string::npos) refuse_name(pattern, "has a brace without its partner");
    name += place_text(pattern, pattern.substr(open + 1, close - open - 1), values);
    at = close + 1;
  }
  if (name.empty() || name.find('/') != std::string::npos) {
    refuse_name(pattern, "is no name of a file",
                advice("name the folder with {}", named("CheckpointOptions::folder")));
  }
  return name.ends_with(kCheckpointSuffix) ? name : name + kCheckpointSuffix;
}

}  // namespace headrace
