// Describes one named field of a record, sample or batch, and one record as a source hands it out: the bytes of
// each field, not yet decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/shape.h"

namespace HEADRACE_API headrace {

enum class Encoding {
  kRaw,    // elements of `dtype`, in `shape`
  kImage,  // the bytes of a JPEG or PNG file; decoded to u8 (H, W, 3)
};

struct Field {
  std::string name = {};  // "image", "label"
  DType dtype = DType::kF32;
  Shape shape;  // of one record; a dynamic extent varies between records
  Encoding encoding = Encoding::kRaw;

  bool operator==(const Field&) const = default;
};

// Maximum number of fields per record: they are kept inline on the hot path.
inline constexpr std::size_t kMaxFields = 4;

using Fields = std::vector<Field>;

// Returns the position of the field with this name. Throws ConfigError listing the existing names.
std::size_t find_field(const Fields& fields, const std::string& name);

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
