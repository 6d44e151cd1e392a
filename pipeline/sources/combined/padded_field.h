// The padding of one field of varying length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/source.h"

namespace headrace {

struct PaddedField {
  std::size_t field = 0;
  std::size_t row_bytes = 0;  // per entry along the first extent
  std::int64_t length = 0;    // entries; 0: not known yet
  std::byte value = {};

  std::size_t bytes() const noexcept { return row_bytes * static_cast<std::size_t>(length); }
};

// Returns the bytes of one entry along the field's first extent.
inline std::size_t entry_bytes_of(const Field& field) {
  return static_cast<std::size_t>(field.shape.without_front().elements()) * size_of(field.dtype);
}

// Returns one padding for each of `pad`, or, if it is empty, for every raw field of varying first extent. Throws
// ConfigError if a field cannot be padded, or if there is none. `call` is named in messages.
std::vector<PaddedField> plan_padding(const SourceInfo& info, const std::vector<PadField>& pad,
                                      const std::string& call = "padded_batch()");

// Returns the error of a record whose field has `bytes` bytes.
DataError unpaddable(const SourceInfo& info, std::uint64_t record, const PaddedField& padding, std::size_t bytes);

}  // namespace headrace
