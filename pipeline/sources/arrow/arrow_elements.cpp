#include "headrace/pipeline/sources/arrow/arrow_elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

const FileElement& element_of(const ArrowType& type) {
  static constexpr FileElement kByte;  // of a boolean
  const ArrowType& values = type.innermost().values();
  return values.kind == ArrowKind::kBits ? kByte : values.element;
}

}  // namespace

bool has_floats(const ArrowType& type) { return element_of(type).kind == FileElement::Kind::kFloat; }

DType number_type(const ArrowType& root, const ArrowColumn& column, LabelType label_type) {
  const auto type_of = [&](const ArrowPath& path) -> const ArrowType& { return type_at(root, path); };
  const bool is_common = column.is_label() || column.paths.size() > 1;
  if (!is_common) return tensor_type_of(element_of(type_of(column.paths.front())));
  for (std::size_t i = 0; i < column.paths.size(); ++i) {
    if (tensor_type_of(element_of(type_of(column.paths[i]))) != DType::kF16) continue;
    throw ConfigError(fmt::format("the column '{}' holds float16 where float32 is needed", column.names[i]),
                      "cast it to float32");
  }
  const bool to_predict = column.is_label() && label_type == LabelType::kNumber;
  const auto floats = [&](const ArrowPath& path) { return has_floats(type_of(path)); };
  return to_predict || std::ranges::any_of(column.paths, floats) ? DType::kF32 : DType::kI64;
}

bool is_sliceable(const ArrowType& type, DType dtype) {
  const ArrowType& inner = type.innermost();
  return inner.kind == ArrowKind::kNumbers && is_tensor_type(inner.element) &&
         tensor_type_of(inner.element) == dtype;
}

}  // namespace headrace
