// Copies the rows of records that nothing else is done to: no call a record.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/plan/sample_program.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// Thread-safe. The source must outlive it.
class RowCopier {
 public:
  // None where the source has no columns or the program does more than copying.
  static std::optional<RowCopier> of(const Source& source, const SampleProgram& program);

  // The fields of `records`, each below the source's number of records, to rows that follow one another; `first`
  // is where the first one's begin.
  void copy(std::span<const std::uint64_t> records, const SampleProgram::Rows& first) const noexcept;

 private:
  explicit RowCopier(std::span<const FieldColumn> columns) : columns_(columns.begin(), columns.end()) {}

  std::vector<FieldColumn> columns_;
};

}  // namespace headrace
