// Whether a record's label is one of its source's classes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/pipeline/source.h"

namespace headrace {

class LabelCheck {
 public:
  // Labels that lie in memory are looked at here, once.
  explicit LabelCheck(const Source& source);

  // True where the source does not say how many classes there are, or no label can be wrong.
  bool does_nothing() const noexcept { return field_ == kMaxFields; }
  // StepError where the record's label is none of them.
  void check(const RecordView& record) const;

 private:
  bool holds(std::span<const std::byte> label) const noexcept;

  std::size_t field_ = kMaxFields;  // that is checked; kMaxFields: none
  std::uint64_t count_ = 0;
};

}  // namespace headrace
