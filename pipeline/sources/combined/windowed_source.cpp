#include "headrace/pipeline/sources/combined/combined_sources.h"

#include <fmt/format.h>

#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

std::uint64_t count_windows(std::uint64_t records, std::uint64_t size, std::uint64_t shift, bool drop_remainder) {
  if (!drop_remainder) return records / shift + (records % shift != 0);
  return records < size ? 0 : (records - size) / shift + 1;
}

}  // namespace

WindowedSource::WindowedSource(JoinedPart records, const WindowOptions& options)
    : part_(std::move(records)), size_(options.size), shift_(options.shift == 0 ? options.size : options.shift) {
  const SourceInfo& info = part_.source->info();
  const bool keeps = !options.drop_remainder;
  Fingerprint fingerprint("window 1");
  fingerprint.add(info.fingerprint).add(part_.fingerprint).add(part_.size).add(size_).add(shift_);
  fingerprint.add(std::uint64_t{keeps});
  info_ = {.name = "windows of " + info.name,
           .records = count_windows(part_.size, size_, shift_, options.drop_remainder),
           .fields = info.fields,
           .classes = info.classes,
           .fingerprint = fingerprint.value(),
           .revision = info.revision,
           .anonymous = info.anonymous};
  for (Field& field : info_.fields) {
    if (field.encoding != Encoding::kRaw || field.shape.is_dynamic()) {
      throw ConfigError(fmt::format("window(): field '{}' differs in size from record to record", field.name),
                        "only fields of one size can be put together");
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(field.shape.elements()) * size_of(field.dtype);
    const auto window = checked_product({bytes, size_});
    if (!window || *window > std::uint64_t{1} << 40 || field.shape.rank() == Shape::kMaxRank) {
      throw ConfigError(
          fmt::format("window({}) of field '{}' {} is too large", size_, field.name, field.shape.to_string()),
          "make the window smaller");
    }
    record_bytes_.push_back(static_cast<std::size_t>(bytes));
    field.shape = field.shape.with_front(keeps ? Shape::kDynamic : static_cast<std::int64_t>(size_));
  }
}

RecordView WindowedSource::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const std::uint64_t first = first_of(index), count = end_of(index) - first;
  std::size_t all = 0;
  for (const std::size_t bytes : record_bytes_) all += bytes;
  scratch.resize(all * count);
  BorrowedBytes own;
  for (std::uint64_t i = 0; i < count; ++i) {
    const RecordView record = part_.source->read(record_of(first + i), *own);
    std::byte* to = scratch.data();
    for (std::size_t field = 0; field < record_bytes_.size(); ++field) {
      const std::size_t bytes = record_bytes_[field];
      std::memcpy(to + i * bytes, record.fields[field].data(), bytes);
      to += count * bytes;
    }
  }
  RecordView window;
  std::size_t at = 0;
  for (std::size_t field = 0; field < record_bytes_.size(); ++field) {
    window.fields[field] = std::span<const std::byte>(scratch).subspan(at, count * record_bytes_[field]);
    at += count * record_bytes_[field];
  }
  return window;
}

std::string WindowedSource::describe(std::uint64_t index) const {
  const std::uint64_t first = first_of(index), last = end_of(index) - 1;
  return part_.source->describe(record_of(first)) + " to " + part_.source->describe(record_of(last));
}

}  // namespace headrace
