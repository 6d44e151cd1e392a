#include "headrace/pipeline/sources/arrays/npy_rows.h"

#include <array>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

std::size_t field_bytes(const Field& field) {
  return static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
}

// Reads one record of one column.
void read_npy_row(const NpyColumn& column, std::uint64_t index, std::span<std::byte> into) {
  const NpyHeader& header = column.header;
  const std::uint64_t bytes = header.record_bytes(), offset = header.record_offset(index);
  const bool as_it_is = is_tensor_type(header.element) && column.field.dtype == tensor_type_of(header.element);
  if (as_it_is) return column.file.read_exact(offset, into);
  BorrowedBytes raw;
  (*raw).resize(static_cast<std::size_t>(bytes));
  column.file.read_exact(offset, *raw);
  if (column.field.dtype == DType::kI64) {
    convert_to_i64(header.element, *raw, into);
  } else {
    convert_elements(header.element, *raw, into);
  }
}

}  // namespace

NpyRows::NpyRows(std::string name, std::vector<NpyColumn> columns) : columns_(std::move(columns)) {
  Fingerprint fingerprint("npy rows 1"), revision("");
  info_.name = std::move(name);
  info_.records = columns_.front().header.records();
  for (const NpyColumn& column : columns_) {
    info_.fields.push_back(column.field);
    fingerprint.add(column.field).add(column.file.size());
    revision.add(column.file.modified_ns());
  }
  info_.fingerprint = fingerprint.value();
  info_.revision = revision.value();
}

RecordView NpyRows::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  std::array<std::size_t, kMaxFields> offset{};
  std::size_t end = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    offset[i] = end;
    end += (field_bytes(columns_[i].field) + 15) / 16 * 16;
  }
  if (scratch.size() < end) scratch.resize(end);
  RecordView view;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::span<std::byte> into = std::span(scratch).subspan(offset[i], field_bytes(columns_[i].field));
    try {
      read_npy_row(columns_[i], index, into);
    } catch (const Error& error) {
      throw DataError(error.code(), "cannot read " + columns_[i].field.name + " of " + describe(index),
                      {.source = info_.name, .record = index}, error.message());
    }
    view.fields[i] = into;
  }
  return view;
}

void NpyRows::will_read(std::span<const std::uint64_t> records) const {
  std::vector<ByteExtent> extents;
  for (const NpyColumn& column : columns_) {
    extents.clear();
    for (const std::uint64_t record : records)
      extents.push_back({.offset = column.header.record_offset(record), .size = column.header.record_bytes()});
    column.file.will_read(extents);
  }
}

std::string NpyRows::describe(std::uint64_t index) const { return info_.name + "[" + std::to_string(index) + "]"; }

}  // namespace headrace
