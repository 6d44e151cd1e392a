#include "headrace/pipeline/sources/combined/padded_field.h"

#include <fmt/format.h>

namespace headrace {
namespace {

bool varies(const Field& field) { return field.encoding == Encoding::kRaw && field.shape.is_dynamic(); }

std::vector<PadField> all_that_vary(const Fields& fields, const std::string& call) {
  std::vector<PadField> pad;
  for (const Field& field : fields) {
    if (varies(field)) pad.push_back({.field = field.name});
  }
  if (pad.empty()) throw ConfigError(call + ": no field differs in length from record to record", "use batch()");
  return pad;
}

PaddedField plan_one(const SourceInfo& info, const PadField& pad, const std::string& call) {
  const std::size_t at = find_field(info.fields, pad.field);
  const Field& field = info.fields[at];
  if (!varies(field) || field.shape.without_front().is_dynamic()) {
    throw ConfigError(fmt::format("{}: field '{}' {} cannot be padded", call, field.name, field.shape.to_string()),
                      "raw fields are, whose first extent alone differs from record to record");
  }
  if (pad.length < 0) throw ConfigError(fmt::format("{}: field '{}' to length {}", call, pad.field, pad.length));
  const std::size_t row = entry_bytes_of(field);
  if (row == 0) throw ConfigError(fmt::format("{}: field '{}' has no elements", call, pad.field));
  return {.field = at, .row_bytes = row, .length = pad.length, .value = std::byte{pad.value}};
}

}  // namespace

std::vector<PaddedField> plan_padding(const SourceInfo& info, const std::vector<PadField>& pad,
                                      const std::string& call) {
  std::vector<PaddedField> paddings;
  for (const PadField& one : pad.empty() ? all_that_vary(info.fields, call) : pad)
    paddings.push_back(plan_one(info, one, call));
  if (info.fields.size() + paddings.size() > kMaxFields) {
    throw ConfigError(fmt::format("{}: {} fields with their lengths; a record has at most {}", call,
                                  info.fields.size() + paddings.size(), kMaxFields));
  }
  return paddings;
}

DataError unpaddable(const SourceInfo& info, std::uint64_t record, const PaddedField& padding, std::size_t bytes) {
  const DataLocation at{.source = info.name, .record = record};
  const std::string& name = info.fields[padding.field].name;
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

}  // namespace headrace
