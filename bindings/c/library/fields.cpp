#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {

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

Fields fields_of(const hr_field* fields, std::size_t count) {
  Fields list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(field_of((&given(fields, "fields"))[i]));
  return list;
}

void check_index(std::size_t index, std::size_t count, const char* what) {
  if (index < count) return;
  throw ConfigError(fmt::format("{}: there is no {} {}", current_function, what, index),
                    count == 0 ? "there are none" : fmt::format("they are 0 to {}", count - 1));
}

void write_shape(const Shape& shape, std::int64_t* extents, std::size_t* rank) {
  if (extents != nullptr) std::ranges::copy(shape.extents(), extents);
  if (rank != nullptr) *rank = static_cast<std::size_t>(shape.rank());
}

}  // namespace headrace::c
