#include "headrace/pipeline/plan/row_copier.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

// Copies elements of a size known to the compiler: a load and a store each.
template <std::size_t kBytes>
void copy_elements(const FieldColumn& column, std::span<const std::uint64_t> records, std::byte* to) noexcept {
  for (const std::uint64_t record : records) {
    std::memcpy(to, column.data + record * kBytes, kBytes);
    to += kBytes;
  }
}

void copy_slices(const FieldColumn& column, std::span<const std::uint64_t> records, std::byte* to) noexcept {
  for (const std::uint64_t record : records) {
    std::memcpy(to, column.data + record * column.record_bytes, column.record_bytes);
    to += column.record_bytes;
  }
}

void copy_column(const FieldColumn& column, std::span<const std::uint64_t> records, std::byte* to) noexcept {
  switch (column.record_bytes) {
    case 1: return copy_elements<1>(column, records, to);
    case 2: return copy_elements<2>(column, records, to);
    case 4: return copy_elements<4>(column, records, to);
    case 8: return copy_elements<8>(column, records, to);
    default: return copy_slices(column, records, to);
  }
}

}  // namespace

std::optional<RowCopier> RowCopier::of(const Source& source, const SampleProgram& program) {
  const std::span<const FieldColumn> columns = source.columns();
  if (columns.empty() || !program.only_copies()) return std::nullopt;
  return RowCopier(columns);
}

void RowCopier::copy(std::span<const std::uint64_t> records, const SampleProgram::Rows& first) const noexcept {
  for (std::size_t i = 0; i < columns_.size(); ++i) copy_column(columns_[i], records, first[i]);
}

}  // namespace headrace
