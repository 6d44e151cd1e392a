#include "headrace/pipeline/sources/arrays/array_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

std::size_t bytes_of_one(const std::string& name, const Field& field) {
  if (field.encoding != Encoding::kRaw || field.shape.is_dynamic()) {
    throw ConfigError(
        name + ": field '" + field.name + "' has records of different sizes, shape " + field.shape.to_string(),
        "arrays in memory hold raw elements of one fixed shape");
  }
  return static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
}

void check_size(const std::string& name, std::uint64_t records, const BorrowedArray& array, std::size_t one) {
  // Divided, not multiplied: a huge record count must not wrap around.
  const bool fits =
      one == 0 ? array.bytes.empty() : array.bytes.size() / one == records && array.bytes.size() % one == 0;
  if (fits) return;
  throw ConfigError(name + ": field '" + array.field.name + "' has " + std::to_string(array.bytes.size()) +
                        " bytes, not " + std::to_string(records) + " records of " + std::to_string(one),
                    "every array holds one entry a record, back to back");
}

std::span<const std::byte> slice(const FieldColumn& column, std::uint64_t index) noexcept {
  return {column.data + index * column.record_bytes, column.record_bytes};
}

std::vector<BorrowedArray> owned(std::vector<Array> arrays) {
  std::vector<BorrowedArray> result;
  for (Array& array : arrays) {
    auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(array.bytes));
    result.push_back({.field = std::move(array.field), .bytes = *bytes, .owner = bytes});
  }
  return result;
}

}  // namespace

ArraySource::ArraySource(std::string name, std::uint64_t records, std::vector<Array> arrays,
                         std::vector<std::string> classes, std::uint64_t label_count, std::uint64_t begins_at,
                         std::vector<SourceColumn> columns)
    : ArraySource(std::move(name), records, owned(std::move(arrays)), std::move(classes), label_count, begins_at) {
  info_.columns = std::move(columns);
}

ArraySource::ArraySource(std::string name, std::uint64_t records, std::vector<BorrowedArray> arrays,
                         std::vector<std::string> classes, std::uint64_t label_count, std::uint64_t begins_at)
    : arrays_(std::move(arrays)), begins_at_(begins_at) {
  if (arrays_.empty() || arrays_.size() > kMaxFields) {
    throw ConfigError(name + ": has " + std::to_string(arrays_.size()) + " fields",
                      "a source has 1 to " + std::to_string(kMaxFields));
  }
  Fingerprint fingerprint("array 1");
  fingerprint.add(records);
  for (const BorrowedArray& array : arrays_) {
    columns_.push_back({.data = array.bytes.data(), .record_bytes = bytes_of_one(name, array.field)});
    check_size(name, records, array, columns_.back().record_bytes);
    fingerprint.add(array.field).add(array.bytes);
    info_.fields.push_back(array.field);
  }
  largest_ = *std::ranges::max_element(columns_, {}, &FieldColumn::record_bytes);
  for (const std::string& name_of_class : classes) fingerprint.add(name_of_class);
  info_.name = std::move(name);
  info_.records = records;
  info_.label_count = label_count;
  info_.classes = std::move(classes);
  info_.fingerprint = fingerprint.value();
  info_.resident = true;
}

RecordView ArraySource::read(std::uint64_t index, std::vector<std::byte>& /*scratch*/) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  RecordView view;
  for (std::size_t i = 0; i < columns_.size(); ++i) view.fields[i] = slice(columns_[i], index);
  return view;
}

std::span<const std::byte> ArraySource::peek(std::uint64_t index) const noexcept {
  if (index >= info_.records) return {};
  return slice(largest_, index);
}

std::optional<std::int64_t> ArraySource::label(std::uint64_t index) const noexcept {
  const Field label{.name = "label", .dtype = DType::kI64, .shape = {}};
  const auto found = std::ranges::find(info_.fields, label);
  if (found == info_.fields.end() || index >= info_.records) return std::nullopt;
  std::int64_t value = 0;
  std::memcpy(&value, slice(columns_[static_cast<std::size_t>(found - info_.fields.begin())], index).data(),
              sizeof value);
  return value;
}

std::uint64_t ArraySource::offset(std::uint64_t index) const noexcept {
  if (begins_at_ == DataLocation::kUnknown) return DataLocation::kUnknown;
  return begins_at_ + index * columns_.front().record_bytes;
}

std::string ArraySource::describe(std::uint64_t index) const {
  return info_.name + "[" + std::to_string(index) + "]";
}

SourcePtr in_memory(std::string name, std::uint64_t records, std::vector<Array> arrays) {
  return std::make_shared<ArraySource>(std::move(name), records, std::move(arrays));
}

SourcePtr borrowed_arrays(std::string name, std::uint64_t records, std::vector<BorrowedArray> arrays,
                          std::vector<std::string> classes) {
  return std::make_shared<ArraySource>(std::move(name), records, std::move(arrays), std::move(classes));
}

}  // namespace headrace
