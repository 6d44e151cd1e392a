// The values of one column of one batch, as the Arrow columnar format lays them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/pipeline/sources/arrow/arrow_type.h"

namespace headrace {

// Positions of children from the root of a schema to a column.
using ArrowPath = std::vector<std::size_t>;
const ArrowType& type_at(const ArrowType& root, const ArrowPath& path);

// Views into a batch, which outlives them. Rows count from the batch's first. Errors are Error(kDataCorrupt)
// without a location; the C interface does not say how large buffers are, so that only what contradicts itself is
// found.
class ArrowCells {
 public:
  // Throws if the batch has not the form that the type says. `root` outlives this.
  ArrowCells(const ArrowType& root, const ArrowPath& path, const ArrowArray& batch);

  const ArrowType& type() const noexcept { return *type_; }
  // Returns false if no value of the column is null, so that is_null() need not be asked.
  bool may_have_nulls() const noexcept;
  // Returns whether the value is null, or a struct around it, or a value in the lists that it consists of.
  bool is_null(std::int64_t row) const;

  // Returns the bytes of a value. REQUIRES: the type is kBytes or a dictionary of it; not null.
  std::span<const std::byte> bytes(std::int64_t row) const;

  // The following are for numbers and booleans, dictionaries of these, and lists of them.
  // Returns the number of elements.
  std::int64_t count(std::int64_t row) const { return elements(row).size(); }
  // Sets the extents of the value's lists, outermost first; kUneven where lists on one level are of unequal
  // length.
  static constexpr std::int64_t kUneven = -1;
  void extents(std::int64_t row, std::vector<std::int64_t>& extents) const;
  // Returns the elements as they lie in memory. REQUIRES: is_tensor_type() of their type.
  std::span<const std::byte> slice(std::int64_t row) const;
  // Appends the elements as `dtype`: that of tensor_type_of(), or kI64 or kF32 from integers.
  void append(std::int64_t row, DType dtype, std::vector<std::byte>& to) const;

 private:
  struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const noexcept { return end - begin; }
  };
  struct Around {
    const ArrowArray* array;
    std::int64_t shift;  // from a row of the batch to one of the array
  };

  const ArrowArray& top() const noexcept { return *levels_.front(); }
  const ArrowArray& leaf() const noexcept { return *levels_.back(); }
  Range at(std::int64_t row) const noexcept { return {row + shift_, row + shift_ + 1}; }
  // Returns the range of children that the lists `range` of a level span.
  Range within(std::size_t level, const ArrowType& type, Range range) const;
  Range elements(std::int64_t row) const;

  const ArrowType* type_;
  std::vector<Around> around_;             // structs, outermost first
  std::vector<const ArrowArray*> levels_;  // the column's array, then its list's values, ...
  std::int64_t shift_ = 0;                 // from a row of the batch to one of the column
};

}  // namespace headrace
