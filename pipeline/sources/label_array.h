// Labels as every source hands them out: i64, whatever the file holds.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "headrace/pipeline/sources.h"

namespace headrace {

inline Array label_array(std::span<const std::byte> labels) {
  Array array{.field = {.name = "label", .dtype = DType::kI64, .shape = {}}, .bytes = {}};
  array.bytes.resize(labels.size() * sizeof(std::int64_t));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto value = std::to_integer<std::int64_t>(labels[i]);
    std::memcpy(array.bytes.data() + i * sizeof(value), &value, sizeof(value));
  }
  return array;
}

}  // namespace headrace
