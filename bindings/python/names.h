// Python words and tuples for the engine's enums and fields.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/record.h"

namespace headrace::python {

// Returns the value of the word. Throws ConfigError naming the option and the valid words.
template <typename Value>
Value choose(std::string_view option, std::string_view word,
             std::initializer_list<std::pair<std::string_view, Value>> choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
  }
  throw ConfigError(fmt::format("{} = \"{}\" is not known", option, word), "one of " + known);
}

// The same of an enumeration that has choice_names().
template <typename Choice>
Choice choose(std::string_view option, std::string_view word) {
  static constexpr auto kNames = choice_names(Choice{});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == word) return static_cast<Choice>(i);
  }
  throw ConfigError(fmt::format("{} = \"{}\" is not known", option, word),
                    fmt::format("one of \"{}\"", fmt::join(kNames, "\", \"")));
}

// Parses "uint8" and so forth, see to_string(DType).
DType dtype_of(std::string_view name);

// A field as in headrace/_fields.py: name, type, extents (-1: differs from record to record), encoded, layout.
using FieldTuple =
    std::tuple<std::string, std::string, std::vector<std::int64_t>, bool, std::optional<std::string>>;
FieldTuple to_tuple(const Field& field);
Field to_field(const FieldTuple& tuple);
std::vector<FieldTuple> to_tuples(const Fields& fields);
Fields to_fields(const std::vector<FieldTuple>& tuples);

}  // namespace headrace::python
