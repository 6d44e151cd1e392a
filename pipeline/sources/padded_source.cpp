#include "headrace/pipeline/sources/padded_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/borrowed_bytes.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

bool varies(const Field& field) { return field.encoding == Encoding::kRaw && field.shape.is_dynamic(); }

}  // namespace

PaddedSource::PaddedSource(SourcePtr source, std::vector<PadField> pad)
    : source_(std::move(source)), info_(source_->info()) {
  if (pad.empty()) {
    for (const Field& field : info_.fields) {
      if (varies(field)) pad.push_back({.field = field.name});
    }
  }
  if (pad.empty())
    throw ConfigError("padded_batch(): no field differs in length from record to record", "use .batch()");
  for (const PadField& one : pad) paddings_.push_back(plan(one));
  find_lengths();
  Fingerprint fingerprint("padded 1");
  fingerprint.add(info_.fingerprint);
  for (const Padding& padding : paddings_) {
    Field& field = info_.fields[padding.field];
    std::vector<std::int64_t> extents(field.shape.extents().begin(), field.shape.extents().end());
    extents.front() = padding.length;
    field.shape = Shape(std::span<const std::int64_t>(extents));
    const std::string length_name = field.name + "_length";
    info_.fields.push_back({.name = length_name, .dtype = DType::kI64, .shape = {}});
    fingerprint.add(std::uint64_t{padding.field}).add(static_cast<std::uint64_t>(padding.length));
    fingerprint.add(std::uint64_t{std::to_integer<unsigned>(padding.value)});
  }
  if (info_.fields.size() > kMaxFields) {
    throw ConfigError(fmt::format("padded_batch(): {} fields with their lengths; a record has at most {}",
                                  info_.fields.size(), kMaxFields));
  }
  info_.resident = false;  // the padded bytes are made in the reader's scratch
  info_.fingerprint = fingerprint.value();
}

PaddedSource::Padding PaddedSource::plan(const PadField& pad) const {
  const std::size_t at = find_field(info_.fields, pad.field);
  const Field& field = info_.fields[at];
  if (!varies(field) || field.shape.without_front().is_dynamic()) {
    throw ConfigError(
        fmt::format("padded_batch(): field '{}' {} cannot be padded", field.name, field.shape.to_string()),
        "raw fields are, whose first extent alone differs from record to record");
  }
  if (pad.length < 0)
    throw ConfigError(fmt::format("padded_batch(): field '{}' to length {}", pad.field, pad.length));
  const std::size_t row = static_cast<std::size_t>(field.shape.without_front().elements()) * size_of(field.dtype);
  if (row == 0) throw ConfigError(fmt::format("padded_batch(): field '{}' has no elements", pad.field));
  return {.field = at, .row_bytes = row, .length = pad.length, .value = pad.value};
}

void PaddedSource::find_lengths() {
  if (std::ranges::all_of(paddings_, [](const Padding& padding) { return padding.length > 0; })) return;
  std::vector<std::size_t> longest(paddings_.size());
  std::vector<std::byte> scratch;
  for (std::uint64_t record = 0; record < info_.records; ++record) {
    const RecordView view = source_->read(record, scratch);
    for (std::size_t i = 0; i < paddings_.size(); ++i) {
      const std::size_t bytes = view.fields[paddings_[i].field].size();
      if (bytes % paddings_[i].row_bytes != 0) throw bad_length(record, paddings_[i], bytes);
      longest[i] = std::max(longest[i], bytes / paddings_[i].row_bytes);
    }
  }
  for (std::size_t i = 0; i < paddings_.size(); ++i) {
    // At least one entry: a tensor without elements would be none.
    if (paddings_[i].length == 0)
      paddings_[i].length = static_cast<std::int64_t>(std::max<std::size_t>(1, longest[i]));
  }
}

DataError PaddedSource::bad_length(std::uint64_t index, const Padding& padding, std::size_t bytes) const {
  const DataLocation at{.source = info_.name, .record = index};
  const std::string& name = info_.fields[padding.field].name;
  if (bytes % padding.row_bytes != 0) {
    return DataError(ErrorCode::kDataCorrupt,
                     fmt::format("field '{}' has {} bytes, no multiple of {}", name, bytes, padding.row_bytes),
                     at);
  }
  return DataError(ErrorCode::kDataCorrupt,
                   fmt::format("field '{}' has {} entries, more than the {} it is padded to", name,
                               bytes / padding.row_bytes, padding.length),
                   at, "pad to the longest record: length 0, or raise it");
}

RecordView PaddedSource::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  BorrowedBytes own;
  const RecordView view = source_->read(index, *own);
  // All of it is copied: the bytes of the source's own scratch end with this call.
  const std::size_t fields = source_->info().fields.size();
  std::array<std::size_t, kMaxFields> offset{}, size{};
  std::size_t end = 0;
  const auto reserve = [&](std::size_t field, std::size_t bytes) {
    offset[field] = end;
    size[field] = bytes;
    end += (bytes + 15) / 16 * 16;
  };
  for (std::size_t i = 0; i < fields; ++i) reserve(i, view.fields[i].size());
  for (std::size_t i = 0; i < paddings_.size(); ++i) {
    const Padding& padding = paddings_[i];
    const std::size_t bytes = view.fields[padding.field].size();
    if (bytes % padding.row_bytes != 0 || bytes > padding.bytes()) throw bad_length(index, padding, bytes);
    reserve(padding.field, padding.bytes());
    reserve(fields + i, sizeof(std::int64_t));
  }
  if (scratch.size() < end) scratch.resize(end);
  RecordView result;
  for (std::size_t i = 0; i < fields; ++i) {
    std::ranges::copy(view.fields[i], scratch.begin() + static_cast<std::ptrdiff_t>(offset[i]));
    result.fields[i] = std::span<const std::byte>(scratch).subspan(offset[i], size[i]);
  }
  for (std::size_t i = 0; i < paddings_.size(); ++i) {
    const Padding& padding = paddings_[i];
    const std::size_t bytes = view.fields[padding.field].size();
    std::fill_n(scratch.begin() + static_cast<std::ptrdiff_t>(offset[padding.field] + bytes),
                padding.bytes() - bytes, padding.value);
    const auto length = static_cast<std::int64_t>(bytes / padding.row_bytes);
    std::memcpy(scratch.data() + offset[fields + i], &length, sizeof length);
    result.fields[fields + i] = std::span<const std::byte>(scratch).subspan(offset[fields + i], sizeof length);
  }
  return result;
}

}  // namespace headrace
