// Elements of arrays in files: more types than tensors have, in either byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/devices/base/dtype.h"

namespace headrace {

struct FileElement {
  enum class Kind : std::uint8_t { kUnsigned, kSigned, kFloat };

  Kind kind = Kind::kUnsigned;
  std::size_t bytes = 1;  // 1, 2, 4 or 8; for a float 2, 4 or 8
  bool big_endian = false;

  bool operator==(const FileElement&) const = default;
};

// Returns the tensor type for them: the smallest that holds every value. float64 becomes float32, rounded to
// nearest; uint64 becomes int64, and a value beyond that is an error.
DType tensor_type_of(const FileElement& element);
// Returns whether the bytes in the file are the tensor's bytes.
bool is_tensor_type(const FileElement& element);

// Convert from.size() / element.bytes elements to tensor_type_of(element), or to int64 from any integer type.
// Throw Error(kDataCorrupt) for an integer beyond the type.
void convert_elements(const FileElement& element, std::span<const std::byte> from, std::span<std::byte> to);
void convert_to_i64(const FileElement& element, std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace headrace
