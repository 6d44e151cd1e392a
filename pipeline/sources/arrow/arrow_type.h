// An ArrowSchema, parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/arrow_structs.h"
#include "headrace/pipeline/sources/arrays/file_elements.h"

namespace headrace {

enum class ArrowKind {
  kNumbers,     // elements of `element`: also dates, times and durations
  kBits,        // booleans
  kBytes,       // binary or text of any length
  kList,        // children[0], of any length
  kFixedList,   // `width` of children[0]
  kStruct,      // children
  kDictionary,  // indices of `element` into values of type children[0]
  kOther,       // bytes of fixed size, unions, maps, decimals, list views, ...
};

enum class ArrowLayout { kOffsets32, kOffsets64, kViews };

struct ArrowType {
  std::string name;    // of the column
  std::string format;  // as in the schema
  ArrowKind kind = ArrowKind::kOther;
  FileElement element = {};
  ArrowLayout layout = ArrowLayout::kOffsets32;  // of kBytes and kList
  bool is_text = false;                          // of kBytes
  std::int64_t width = 0;
  std::vector<ArrowType> children = {};
  std::vector<std::int64_t> tensor_shape = {};  // of arrow.fixed_shape_tensor; else empty

  bool operator==(const ArrowType&) const = default;

  bool is_bytes() const noexcept { return kind == ArrowKind::kBytes; }
  bool is_list() const noexcept { return kind == ArrowKind::kList || kind == ArrowKind::kFixedList; }
  // Returns the type of a dictionary's values; itself if it is none.
  const ArrowType& values() const noexcept { return kind == ArrowKind::kDictionary ? children.front() : *this; }
  bool has_text() const noexcept { return values().is_bytes() && values().is_text; }
  // Returns the type within all lists around it; itself without any.
  const ArrowType& innermost() const noexcept { return is_list() ? children.front().innermost() : *this; }
};

// Returns "int64", "text", "list of float32"; for what is not read its Arrow format: "Arrow format 'd:9,2'".
std::string describe(const ArrowType& type);

// Throws DataError naming `source` if the schema is none.
ArrowType parse_arrow_schema(const ArrowSchema& schema, const std::string& source);

// Returns the names of classes by column that Hugging Face's datasets keep in the metadata of a schema.
std::vector<std::string> find_class_names(const ArrowSchema& schema, const std::string& column);

}  // namespace headrace
