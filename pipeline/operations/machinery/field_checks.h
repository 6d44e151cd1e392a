// What operations ask of a field and of their options: each throws the ConfigError that says what is wrong.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "headrace/pipeline/operations/machinery/definition.h"

namespace headrace {

// An operation that is about to be applied to a field.
class FieldChecks {
 public:
  FieldChecks(const OperationDefinition& operation, const Field& field) : operation_(operation), field_(field) {}

  [[noreturn]] void refuse(const std::string& why, const std::string& hint = {}) const;

  void want_decoded() const;
  // An image (H, W, C).
  void want_channels_last() const;
  void want_type(std::initializer_list<DType> types) const;  // u8, or u8 and f32
  // Of a side of the result.
  void want_size(int size) const;
  void want_finite(const std::vector<float>& values) const;
  void want_probability(float probability) const;

 private:
  const OperationDefinition& operation_;
  const Field& field_;
};

// Sides of results and widths of padding: their squares stay below the pixels an image may have.
inline constexpr int kMaxSide = 1 << 14;

// The image after it became a square.
Field squared(const Field& image, int size);

}  // namespace headrace
