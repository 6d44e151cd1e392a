// Copies the rows of records that need no other work, without a call per record.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/plan/sample_program.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// Thread-safe. REQUIRES: the source outlives it.
class RowCopier {
 public:
  // Returns std::nullopt if the source has no columns or the program does more than copying.
  static std::optional<RowCopier> of(const Source& source, const SampleProgram& program);

  // Copies the fields of `records` to consecutive rows, of which `first` is the first. REQUIRES: each record is
  // below the source's number of records.
  void copy(std::span<const std::uint64_t> records, const SampleProgram::Rows& first) const noexcept;

 private:
  explicit RowCopier(std::span<const FieldColumn> columns) : columns_(columns.begin(), columns.end()) {}

  std::vector<FieldColumn> columns_;
};

}  // namespace headrace
