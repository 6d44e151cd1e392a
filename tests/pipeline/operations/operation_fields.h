// What operations make of a field, and what they refuse.
#pragma once

#include "headrace/pipeline/operations.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline Field image_field(const Shape& shape, DType dtype = DType::kU8) {
  return {.name = "image", .dtype = dtype, .shape = shape};
}
inline Field label_field() { return {.name = "label", .dtype = DType::kI64, .shape = {}}; }
inline Field rgb_field() { return image_field({32, 48, 3}); }

// The field after a whole chain.
inline Field field_after(const Operations& operations, Field field) {
  for (const Operation& operation : operations.list()) field = apply_to_field(operation, field);
  return field;
}

// Empty: they take the field.
inline std::string refusal_of_operations(const Operations& operations, const Field& field) {
  return message_of([&] { field_after(operations, field); });
}

}  // namespace headrace::test
