// A sample as the cache keeps it: for each field a header of 64 bytes (bytes, rank, extents; i64 in the
// machine's order) and its elements, padded to 64 bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// What append_field() adds for it.
std::size_t appended_bytes(const FieldView& field) noexcept;
// Adds a field at the end of `sample`, whose first `used` bytes are taken; returns how many are then.
std::size_t append_field(std::vector<std::byte>& sample, std::size_t used, const FieldView& field);

// Reads the fields one after another, in the order they were appended.
class CachedSampleReader {
 public:
  explicit CachedSampleReader(std::span<const std::byte> sample) : rest_(sample) {}

  FieldView next();

 private:
  std::span<const std::byte> rest_;
};

}  // namespace headrace
