// Reads and writes structs of programs of any version: the size they were compiled with says which members they
// know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/bindings/c/library/errors.h"

namespace headrace::c {

// Checks the size of a struct `name` whose macro is `macro`. Throws ConfigError if no version had such a size.
inline void check_size(std::size_t size, const char* name, const char* macro) {
  if (size >= 2 * sizeof(std::size_t)) return;
  throw ConfigError(std::string(name) + ".size is " + std::to_string(size),
                    std::string("initialise it with ") + macro);
}

// Returns the options of a program, with defaults for members that it does not know. Throws ConfigError if it sets
// a member that this library does not know.
template <typename Options>
Options read_struct(const Options* from, const Options& defaults, const char* name, const char* macro) {
  static_assert(std::is_trivially_copyable_v<Options>);
  Options options = defaults;
  if (from == nullptr) return options;
  check_size(from->size, name, macro);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof(Options); i < from->size; ++i) {
    if (bytes[i] == 0) continue;
    throw ConfigError(std::string(name) + " has members that this version of Headrace does not know",
                      "run with the version it was compiled with, or a later one");
  }
  std::memcpy(&options, from, std::min(from->size, sizeof(Options)));
  options.size = sizeof(Options);
  return options;
}
#define HR_READ(Type, macro, from)                          \
  ::headrace::c::read_struct<Type>(from, Type macro, #Type, \
                                   #macro)  // NOLINT: a braced list cannot be in parentheses

// Writes the members that the program knows, and zero to those that only it knows.
template <typename Result>
void write_struct(Result* to, Result value, const char* name, const char* macro) {
  static_assert(std::is_trivially_copyable_v<Result>);
  const std::size_t size = given(to, name).size;
  check_size(size, name, macro);
  value.size = size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &value, std::min(size, sizeof(Result)));
}

// Converts a number of the C interface to a C++ enumeration, whose values are 0 ... last.
template <typename Enum>
Enum enum_of(std::int32_t value, Enum last, const char* name) {
  if (value >= 0 && value <= static_cast<std::int32_t>(last)) return static_cast<Enum>(value);
  throw ConfigError(std::string(name) + " = " + std::to_string(value) + " is none of its values",
                    "they are 0 to " + std::to_string(static_cast<std::int32_t>(last)) + ", see headrace.h");
}

inline std::string text_of(const char* text, const char* otherwise = "") {
  return text != nullptr ? text : otherwise;
}

inline std::vector<std::string> texts_of(const char* const* texts, std::size_t count, const char* name) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i) list.emplace_back(&given((&given(texts, name))[i], name));
  return list;
}

// Returns a copy to be freed with hr_string_free().
inline char* owned_text(const std::string& text) {
  auto* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace headrace::c
