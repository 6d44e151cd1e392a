// Words and tuples of Python for the engine's enums and fields.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/record.h"

namespace headrace::python {

// The value that goes with the word; ConfigError naming the option and the words there are.
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

// "uint8" and so on, as to_string(DType) has them.
DType dtype_of(std::string_view name);

// A field as headrace/_fields.py has it: name, type, extents (-1: differs from record to record), encoded.
using FieldTuple = std::tuple<std::string, std::string, std::vector<std::int64_t>, bool>;
FieldTuple to_tuple(const Field& field);
Field to_field(const FieldTuple& tuple);
std::vector<FieldTuple> to_tuples(const Fields& fields);
Fields to_fields(const std::vector<FieldTuple>& tuples);

}  // namespace headrace::python
