// The cache's format of a sample: for each field a 64-byte header (bytes, rank, extents; i64 in machine byte
// order) and its elements, padded to 64 bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Returns the bytes that append_field() adds for the field.
std::size_t appended_bytes(const FieldView& field) noexcept;
// Appends a field to `sample`, whose first `used` bytes are taken; returns the bytes taken afterwards.
std::size_t append_field(std::vector<std::byte>& sample, std::size_t used, const FieldView& field);

// Sets `fields`, which are all that it has, to views into the sample. Throws Error(kInternal) for a sample that
// ends early.
void read_sample(std::span<const std::byte> sample, SampleView fields);

}  // namespace headrace
