// The columns of an Arrow table that become fields, and the tensor types of their numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/sources/arrow/arrow_cells.h"
#include "headrace/pipeline/sources/arrow/arrow_type.h"

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

// The formats recognised at the beginning of a column's bytes.
struct ArrowBytes {
  bool images = false;          // some as a JPEG or PNG file
  const char* other = nullptr;  // some as an image that is not read: "WebP"
  bool anything = false;        // some are there and not empty
};

// Chooses columns as `options` say; `look` tells what a column of bytes holds. Throws ConfigError naming the
// source's columns, also if its only images are of a format that is not read and no columns are named.
ArrowColumns choose_arrow_columns(const ArrowType& root, const ArrowOptions& options,
                                  const std::function<ArrowBytes(const ArrowPath&)>& look);

// Returns whether the elements are floats.
bool has_floats(const ArrowType& type);

// Returns the type of a column's elements: tensor_type_of() them; for labels and in vectors of several columns i64
// for integers, else f32, and f32 for a label to predict.
DType number_type(const ArrowType& root, const ArrowColumn& column, LabelType label_type);

// Returns whether the elements lie in the table as the tensor's.
bool is_sliceable(const ArrowType& type, DType dtype);

}  // namespace headrace
