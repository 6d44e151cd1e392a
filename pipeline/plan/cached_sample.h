// The cache's format of a sample: for each field a 64-byte header (bytes, rank, extents; i64 in machine byte
// order) and its elements, padded to 64 bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/sample_chains.h"

namespace headrace {

// Returns the bytes that append_field() adds for the field.
std::size_t appended_bytes(const FieldView& field) noexcept;
// Appends a field to `sample`, whose first `used` bytes are taken; returns the bytes taken afterwards.
std::size_t append_field(std::vector<std::byte>& sample, std::size_t used, const FieldView& field);

// Sets `fields` to views into the sample, as many as it has. Throws Error(kInternal) for a sample that ends early.
void read_sample(std::span<const std::byte> sample, std::size_t count, SampleView& fields);

// Reads samples of the same fields.
class CachedSampleReader {
 public:
  explicit CachedSampleReader(const Fields& fields);

  // As read_sample(). Where every field has one shape no header is read: each is a line of memory to wait for.
  void read(std::span<const std::byte> sample, SampleView& fields) const;

 private:
  struct Known {
    std::size_t bytes = 0;
    Shape shape;
  };

  std::size_t count_;
  std::vector<Known> known_;  // each field; empty: shapes differ between samples
  std::size_t bytes_ = 0;     // of a sample whose fields are known
};

}  // namespace headrace
