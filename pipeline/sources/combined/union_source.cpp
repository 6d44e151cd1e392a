#include "headrace/pipeline/sources/combined/combined_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

std::string describe_fields(const Fields& fields) {
  std::string text;
  for (const Field& field : fields) {
    text += fmt::format("{}{} {} {}{}", text.empty() ? "" : ", ", field.name,
                        field.encoding == Encoding::kImage ? "encoded" : to_string(field.dtype),
                        field.shape.to_string(), "");
  }
  return text;
}

// Encoded images are alike whatever their sizes.
bool are_alike(const Fields& a, const Fields& b) {
  return std::ranges::equal(a, b, [](const Field& x, const Field& y) {
    if (x.name != y.name || x.encoding != y.encoding) return false;
    return x.encoding == Encoding::kImage || (x.dtype == y.dtype && x.shape == y.shape);
  });
}

void check_fields(const std::string& what, const Fields& first, const std::string& first_name, const Fields& other,
                  const std::string& other_name) {
  if (are_alike(first, other)) return;
  throw ConfigError(fmt::format("{}: {} has the fields {}; {} has {}", what, first_name, describe_fields(first),
                                other_name, describe_fields(other)),
                    "all datasets need the same fields, in the same order");
}

void check_classes(const std::string& what, const SourceInfo& first, const SourceInfo& other) {
  if (!first.classes.empty() && !other.classes.empty() && first.classes != other.classes) {
    throw ConfigError(fmt::format("{}: {} and {} have other classes: their labels do not mean the same", what,
                                  first.name, other.name),
                      "give both the same class folders, empty ones where needed");
  }
}

}  // namespace

UnionSource::UnionSource(const std::string& what, std::vector<SourcePtr> parts, const std::vector<Fields>& made)
    : parts_(std::move(parts)) {
  Fingerprint fingerprint("union 1"), revision("");
  info_.resident = true;
  bool in_files = false;
  const auto fields_of = [&](std::size_t part) { return made.empty() ? parts_[part]->info().fields : made[part]; };
  info_.fields = fields_of(0);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const SourceInfo& info = parts_[i]->info();
    check_fields(what, info_.fields, parts_.front()->info().name, fields_of(i), info.name);
    check_classes(what, parts_.front()->info(), info);
    if (info.records > ~std::uint64_t{0} - info_.records)
      throw ConfigError(what + ": more records than can be numbered");
    if (info_.classes.empty()) info_.classes = info.classes;
    info_.name += (info_.name.empty() ? "" : " + ") + info.name;
    for (const std::uint64_t end : info.file_ends) info_.file_ends.push_back(info_.records + end);
    info_.records += info.records;
    if (info.file_ends.empty()) info_.file_ends.push_back(info_.records);
    info_.resident = info_.resident && info.resident;
    ends_.push_back(info_.records);
    fingerprint.add(info.fingerprint).add(info.records);
    revision.add(info.revision.value_or(0));
    in_files = in_files || info.revision.has_value();
    info_.anonymous = info_.anonymous || info.anonymous;
    info_.reading += (info_.reading.empty() ? "" : "; and ") + describe_reading(*parts_[i]);
  }
  info_.fingerprint = fingerprint.value();
  if (in_files) info_.revision = revision.value();
}

const Source& UnionSource::part_of(std::uint64_t& index) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const auto part = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  if (part > 0) index -= ends_[part - 1];
  return *parts_[part];
}

RecordView UnionSource::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  const Source& part = part_of(index);
  return part.read(index, scratch);
}

void UnionSource::will_read(std::span<const std::uint64_t> records) const {
  std::map<const Source*, std::vector<std::uint64_t>> by_part;
  for (const SourcePtr& part : parts_) {
    if (records.empty()) part->will_read({});
  }
  for (std::uint64_t record : records) {
    const Source& part = part_of(record);
    by_part[&part].push_back(record);
  }
  for (const auto& [part, those] : by_part) part->will_read(those);
}

std::optional<std::int64_t> UnionSource::label(std::uint64_t index) const noexcept {
  if (index >= info_.records) return std::nullopt;
  const Source& part = part_of(index);
  return part.label(index);
}

std::uint64_t UnionSource::offset(std::uint64_t index) const noexcept {
  if (index >= info_.records) return DataLocation::kUnknown;
  const Source& part = part_of(index);
  return part.offset(index);
}

std::string UnionSource::describe(std::uint64_t index) const {
  const Source& part = part_of(index);
  return part.describe(index);
}

}  // namespace headrace
