// Structs and texts of a program, of any version: the size it was compiled with says which members it knows.
#include <fmt/format.h>

#include "headrace/bindings/c/library/handles.h"

namespace headrace::c {
namespace {

// Converts a number of the C interface to a C++ enumeration, whose values are 0 ... greatest.
template <typename Enum>
Enum enum_of(std::int32_t value, Enum greatest, const char* name) {
  if (value >= 0 && value <= static_cast<std::int32_t>(greatest)) return static_cast<Enum>(value);
  throw ConfigError(fmt::format("{} = {} is none of its values", name, value),
                    fmt::format("they are 0 to {}, see headrace.h", static_cast<std::int32_t>(greatest)));
}

}  // namespace

Field field_of(const hr_field& field) {
  if (field.rank < 0 || field.rank > HR_MAX_RANK) {
    throw ConfigError(fmt::format("field '{}' has rank {}", text_of(field.name), field.rank),
                      fmt::format("it is 0 to {}", HR_MAX_RANK));
  }
  Field made{.name = text_of(field.name),
             .dtype = enum_of(field.dtype, DType::kF32, "dtype"),
             .shape = Shape(std::span(field.shape, static_cast<std::size_t>(field.rank))),
             .encoding = enum_of(field.encoding, Encoding::kImage, "encoding")};
  enum class Layout { kUnsaid = HR_LAYOUT_UNSAID, kLast = HR_CHANNELS_LAST, kFirst = HR_CHANNELS_FIRST };
  const Layout layout = enum_of(field.layout, Layout::kFirst, "layout");
  if (layout != Layout::kUnsaid) {
    made.layout = layout == Layout::kFirst ? ImageLayout::kChannelsFirst : ImageLayout::kChannelsLast;
  }
  return made;
}

Fields fields_of(const hr_field* fields, std::size_t count) {
  Fields list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(field_of((&given(fields, "fields"))[i]));
  return list;
}

hr_field describe(const Field& field, const char* name) {
  hr_field described{.name = name,
                     .dtype = static_cast<std::int32_t>(field.dtype),
                     .encoding = static_cast<std::int32_t>(field.encoding),
                     .rank = field.shape.rank(),
                     .shape = {},
                     .layout = HR_LAYOUT_UNSAID};
  std::ranges::copy(field.shape.extents(), described.shape);
  if (field.layout) {
    described.layout = *field.layout == ImageLayout::kChannelsFirst ? HR_CHANNELS_FIRST : HR_CHANNELS_LAST;
  }
  return described;
}

void check_index(std::size_t index, std::size_t count, const char* what) {
  if (index < count) return;
  throw ConfigError(fmt::format("{}: there is no {} {}", current_function, what, index),
                    count == 0 ? "there are none" : fmt::format("they are 0 to {}", count - 1));
}

void check_size(std::size_t size, const char* name, const char* macro) {
  if (size >= 2 * sizeof(std::size_t)) return;
  throw ConfigError(fmt::format("{}.size is {}", name, size), fmt::format("initialise it with {}", macro));
}

void refuse_unknown_members(const void* from, std::size_t known, std::size_t size, const char* name) {
  const auto* const bytes = static_cast<const unsigned char*>(from);
  if (size <= known || std::all_of(bytes + known, bytes + size, [](unsigned char byte) { return byte == 0; }))
    return;
  throw ConfigError(fmt::format("{} has members that this version of Headrace does not know", name),
                    "run with the version it was compiled with, or a later one");
}

char* owned_text(const std::string& text) {
  auto* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

char* owned_text(const Json& json) {
  return owned_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));  // names need not be UTF-8
}

}  // namespace headrace::c

void hr_string_free(char* text) { delete[] text; }
