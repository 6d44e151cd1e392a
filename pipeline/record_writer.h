// Where a generator's function puts the fields of one record.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "headrace/pipeline/field.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// Lives for one call of the function; every field is written once, in any order.
class RecordWriter {
 public:
  // `buffer` is reused from record to record.
  RecordWriter(const Fields& fields, std::vector<std::byte>& buffer) : fields_(&fields), buffer_(&buffer) {}

  // Room for field number `field`, to be filled before the next call of anything here; uninitialised. A field of a
  // fixed shape has exactly its elements; one of varying first extent a whole number of entries. ConfigError where
  // `bytes` is neither, or the field was written before.
  std::span<std::byte> allocate(std::size_t field, std::size_t bytes);
  void put(std::size_t field, std::span<const std::byte> bytes);
  // The elements of a field, or the one of a scalar.
  template <typename Value>
  requires std::is_arithmetic_v<Value>
  void put(std::size_t field, Value value) { put(field, std::as_bytes(std::span(&value, 1))); }

  // The fields written; ConfigError naming one that was not.
  RecordView view() const;

 private:
  struct Place {
    std::size_t offset = 0, size = 0;
    bool written = false;
  };

  const Fields* fields_;
  std::vector<std::byte>* buffer_;
  std::size_t used_ = 0;
  std::array<Place, kMaxFields> places_{};
};

}  // namespace headrace
