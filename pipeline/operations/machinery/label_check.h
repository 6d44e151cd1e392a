// Checks that a record's label is one of its source's classes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/pipeline/source.h"

namespace headrace {

class LabelCheck {
 public:
  // Checks labels in memory here, once.
  explicit LabelCheck(const Source& source);

  // Returns true if the source does not state the number of classes, or no label can be wrong.
  bool does_nothing() const noexcept { return field_ == kMaxFields; }
  // Returns the checked field. REQUIRES: !does_nothing().
  std::size_t field() const noexcept { return field_; }
  // Throws StepError if the record's label is not one of them.
  void check(const RecordView& record) const {
    if (!does_nothing()) check(record.fields[field_]);
  }
  void check(std::span<const std::byte> label) const;

 private:
  bool holds(std::span<const std::byte> label) const noexcept;

  std::size_t field_ = kMaxFields;  // the checked field; kMaxFields: none
  std::uint64_t count_ = 0;
};

}  // namespace headrace
