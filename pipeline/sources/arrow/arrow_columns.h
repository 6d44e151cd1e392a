// The columns of an Arrow table that become fields.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/sources/arrow/arrow_cells.h"
#include "headrace/pipeline/sources/column_choice.h"

namespace headrace {

enum class ArrowUse {
  kNumbers,  // numbers, booleans, or lists of them; several columns: a vector
  kImage,    // an encoded image
  kMask,     // an encoded image of one channel, whose numbers are kept
  kText,     // its bytes
  kClass,    // the number of its value among all values
};

struct ArrowColumn {
  std::string field;
  ArrowUse use = ArrowUse::kNumbers;
  std::vector<ArrowPath> paths = {};
  std::vector<std::string> names = {};  // of the columns
  ArrowPath files = {};                 // of encoded images: the column of their paths; empty: there is none

  bool is_label() const noexcept { return field == "label"; }
};

struct ArrowColumns {
  std::vector<ArrowColumn> taken;  // the image and the label first
  std::vector<SourceColumn> all;
};

// Chooses columns as `options` say. `is_image` tells whether a column of bytes holds encoded images. Throws
// ConfigError naming the source's columns.
ArrowColumns choose_arrow_columns(const ArrowType& root, const ArrowOptions& options,
                                  const std::function<bool(const ArrowPath&)>& is_image);

}  // namespace headrace
