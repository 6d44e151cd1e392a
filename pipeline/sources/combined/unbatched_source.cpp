#include "headrace/pipeline/sources/combined/combined_sources.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {

UnbatchedSource::UnbatchedSource(SourcePtr batches) : batches_(std::move(batches)), info_(batches_->info()) {
  for (std::size_t i = 0; i < info_.fields.size(); ++i) {
    Field& field = info_.fields[i];
    if (field.encoding != Encoding::kRaw || field.shape.is_dynamic() || field.shape.rank() == 0 ||
        field.shape[0] < 1 || (rows_ != 0 && static_cast<std::uint64_t>(field.shape[0]) != rows_)) {
      throw ConfigError(fmt::format("unbatch(): field '{}' of {}{} is no batch{}", field.name,
                                    field.encoding == Encoding::kRaw ? "" : "encoded ", field.shape.to_string(),
                                    rows_ == 0 ? "" : fmt::format(" of {}", rows_)),
                        "every field needs the same fixed first extent");
    }
    rows_ = static_cast<std::uint64_t>(field.shape[0]);
    field.shape = field.shape.without_front();
    row_bytes_[i] = static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
  }
  if (info_.records > (std::uint64_t{1} << 47) / rows_)
    throw ConfigError("unbatch(): more records than can be numbered");
  info_.records *= rows_;
  for (std::uint64_t& end : info_.file_ends) end *= rows_;
  info_.fingerprint = Fingerprint("unbatched 1").add(info_.fingerprint).add(rows_).value();
}

RecordView UnbatchedSource::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  RecordView view = batches_->read(index / rows_, scratch);
  for (std::size_t i = 0; i < info_.fields.size(); ++i) {
    const std::size_t wanted = row_bytes_[i] * static_cast<std::size_t>(rows_);
    if (view.fields[i].size() != wanted) {
      throw DataError(ErrorCode::kDataCorrupt,
                      fmt::format("field '{}' has {} bytes instead of {}", info_.fields[i].name,
                                  view.fields[i].size(), wanted),
                      {.source = info_.name, .record = index});
    }
    view.fields[i] =
        view.fields[i].subspan(static_cast<std::size_t>(index % rows_) * row_bytes_[i], row_bytes_[i]);
  }
  return view;
}

std::string UnbatchedSource::describe(std::uint64_t index) const {
  return fmt::format("{} row {}", batches_->describe(index / rows_), index % rows_);
}

}  // namespace headrace
