// Labels as every source returns them: i64, from any integer type in the file.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/arrays/file_elements.h"

namespace headrace {

// Throws Error(kDataCorrupt) for a number beyond i64.
inline Array label_array(std::span<const std::byte> labels, const FileElement& element = {}) {
  Array array{.field = {.name = "label", .dtype = DType::kI64, .shape = {}}, .bytes = {}};
  array.bytes.resize(labels.size() / element.bytes * sizeof(std::int64_t));
  convert_to_i64(element, labels, array.bytes);
  return array;
}

}  // namespace headrace
