// Arrow's structs with the memory that they point to, as their release() ends it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/arrow_structs.h"

namespace headrace {

// Returns the format of the field's elements. Throws ConfigError for bfloat16.
const char* arrow_format(const std::string& name, DType dtype);

// A schema with the memory that it points to; its children are released by their own release().
struct ExportedSchema {
  std::string format, name, metadata = {};
  std::int64_t flags = 0;
  std::vector<ArrowSchema> children = {};
  std::vector<ArrowSchema*> places = {};

  // Moves into `schema`, which owns it from then on.
  static void fill(std::unique_ptr<ExportedSchema> exported, ArrowSchema* schema);
};

// An array with the memory that it points to, and with the owner of the rest. Children may be moved out and live
// longer.
struct ExportedArray {
  std::shared_ptr<const void> owner;
  std::array<const void*, 3> buffers{};  // the first: which rows are not null; a null pointer: all
  std::int64_t nulls = 0;
  std::vector<ArrowArray> children = {};
  std::vector<ArrowArray*> places = {};

  static void fill(std::unique_ptr<ExportedArray> exported, std::int64_t length, std::int64_t buffers,
                   ArrowArray* array);
};

// Exports rows of numbers: scalars as they are, vectors as lists of a fixed size, others as
// arrow.fixed_shape_tensor. `shape` is one row's.
void export_numbers_schema(const std::string& name, DType dtype, const Shape& shape, std::int64_t flags,
                           ArrowSchema* schema);
// `exported` has the owner and which rows are null.
void export_numbers(std::unique_ptr<ExportedArray> exported, const void* data, const Shape& shape,
                    std::int64_t rows, ArrowArray* array);

}  // namespace headrace
