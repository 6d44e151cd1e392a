// One record as a source hands it out: the bytes of each field, not yet decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/field.h"

namespace headrace {

// Views into the source's own memory, or into the scratch bytes given to Source::read().
struct RecordView {
  std::array<std::span<const std::byte>, kMaxFields> fields;
};

// One field of all records, back to back in memory.
struct FieldColumn {
  const std::byte* data = nullptr;
  std::size_t record_bytes = 0;
};

}  // namespace headrace
