// The tensor types that Arrow's numbers become.
#pragma once

#include "headrace/devices/base/dtype.h"
#include "headrace/pipeline/sources/arrow/arrow_columns.h"

namespace headrace {

// Returns whether the elements are floats.
bool has_floats(const ArrowType& type);

// Returns the type of a column's elements: tensor_type_of() them; for labels and in vectors of several columns i64
// for integers, else f32, and f32 for a label to predict.
DType number_type(const ArrowType& root, const ArrowColumn& column, LabelType label_type);

// Returns whether the elements lie in the table as the tensor's.
bool is_sliceable(const ArrowType& type, DType dtype);

}  // namespace headrace
