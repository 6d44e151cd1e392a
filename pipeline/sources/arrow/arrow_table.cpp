// A table of another library, all of it in memory, as a source.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/sources/arrow/arrow_field.h"
#include "headrace/pipeline/sources/arrow/arrow_files.h"
#include "headrace/pipeline/sources/arrow/arrow_import.h"
#include "headrace/pipeline/sources/arrow/arrow_type.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {
namespace {

// Tables up to this size are identified by all of their bytes, larger ones by this many of their records.
constexpr std::uint64_t kIdentifiedWhole = std::uint64_t{256} << 20;
constexpr std::uint64_t kIdentifyingRecords = 4'096;

class ArrowTable final : public Source {
 public:
  ArrowTable(ArrowReader reader, const ArrowOptions& options) {
    const ArrowOwned<ArrowSchema> schema = reader.schema();
    root_ = parse_arrow_schema(*schema, options.name);
    while (auto batch = reader.next()) {
      const auto rows = static_cast<std::uint64_t>(batch->get()->length);
      if (rows == 0) continue;
      starts_.push_back(info_.records);
      info_.records += rows;
      batches_.push_back(std::move(*batch));
    }
    if (batches_.empty()) throw DataError(ErrorCode::kDataCorrupt, "has no rows", {.source = options.name});
    info_.name = options.name;
    info_.label_count = options.label_count;
    info_.resident = true;
    ArrowColumns columns =
        choose_arrow_columns(root_, options, [&](const ArrowPath& path) { return look_at(path); });
    for (const ArrowColumn& column : columns.taken) add(column, options, *schema);
    info_.columns = std::move(columns.all);
    has_bad_ = std::ranges::any_of(fields_, &ArrowField::has_bad);
    find_files();
    make_columns();
    info_.fingerprint = identity();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    const ArrowRow at = row_of(index);
    if (has_bad_) check(at);
    if (!files_.empty()) return read_with_files(at, scratch);
    RecordView view;
    for (std::size_t i = 0; i < fields_.size(); ++i) view.fields[i] = fields_[i].value(at);
    return view;
  }

  std::span<const std::byte> peek(std::uint64_t index) const noexcept override {
    if (index >= info_.records || fields_.front().is_bad(index)) return {};
    const ArrowRow at = row_of(index);
    return fields_.front().is_file(at) ? std::span<const std::byte>() : fields_.front().value(at);
  }
  std::span<const FieldColumn> columns() const noexcept override { return columns_; }

  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    if (label_ == nullptr || index >= info_.records || label_->is_bad(index)) return std::nullopt;
    std::int64_t value = 0;
    std::memcpy(&value, label_->value(row_of(index)).data(), sizeof value);
    return value;
  }
  std::string describe(std::uint64_t index) const override { return fmt::format("{}[{}]", info_.name, index); }

 private:
  ArrowRow row_of(std::uint64_t record) const noexcept {
    const auto next = std::ranges::upper_bound(starts_, record);
    const auto batch = static_cast<std::size_t>(next - starts_.begin()) - 1;
    return {.batch = batch, .row = static_cast<std::int64_t>(record - starts_[batch]), .record = record};
  }

  void check(const ArrowRow& at) const {
    for (const ArrowField& field : fields_) {
      if (!field.is_bad(at.record)) continue;
      throw DataError(ErrorCode::kDataCorrupt, field.why_bad(at), {.source = info_.name, .record = at.record});
    }
  }

  // Images that are files are read each time.
  RecordView read_with_files(const ArrowRow& at, std::vector<std::byte>& scratch) const {
    RecordView view;
    std::vector<std::size_t> ends{0};  // of the files in `scratch`, which moves while it grows
    scratch.clear();
    for (const ArrowFiles& files : files_) {
      const ArrowField& field = fields_[files.number()];
      try {
        if (field.is_file(at)) files.read(at, scratch);
      } catch (const Error& error) {
        throw DataError(error.code(), fmt::format("field '{}': {}", field.field().name, error.message()),
                        {.source = info_.name, .record = at.record}, error.hint());
      }
      ends.push_back(scratch.size());
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i].is_file(at)) view.fields[i] = fields_[i].value(at);
    }
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (!fields_[files_[i].number()].is_file(at)) continue;
      view.fields[files_[i].number()] =
          std::span<const std::byte>(scratch).subspan(ends[i], ends[i + 1] - ends[i]);
    }
    return view;
  }

  void find_files() {
    if (std::ranges::none_of(fields_, &ArrowField::may_have_files)) return;
    std::vector<ArrowRow> rows;
    for (std::uint64_t i = 0; i < info_.records; ++i) rows.push_back(row_of(i));
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i].may_have_files()) continue;
      files_.emplace_back(fields_[i], i, rows);
      const auto named = std::ranges::count_if(rows, [&](const ArrowRow& at) { return fields_[i].is_file(at); });
      if (!info_.reading.empty()) info_.reading += "; ";
      info_.reading +=
          fmt::format("{} of '{}' are files on this machine that the table names", named, fields_[i].field().name);
    }
    info_.resident = false;
    if (std::ranges::none_of(files_, &ArrowFiles::are_missing)) return;
    for (const ArrowRow& at : rows) {
      const auto is_usable = [&](const ArrowField& field) {
        return !field.is_bad(at.record) && !(field.may_have_files() && field.is_file(at));
      };
      if (std::ranges::all_of(fields_, is_usable)) return;
    }
    std::vector<std::byte> scratch;
    read(0, scratch);  // throws: no record can be used, and this is why
  }

  ArrowColumnCells cells_of(const ArrowPath& path) const {
    ArrowColumnCells cells;
    for (const ArrowBatch& batch : batches_) cells.emplace_back(root_, path, *batch);
    return cells;
  }

  // Of the first values that are there; all of them may be much of a file that is mapped into memory.
  ArrowBytes look_at(const ArrowPath& path) const {
    constexpr int kLookedAt = 4096;
    ArrowBytes found;
    int left = kLookedAt;
    for (const ArrowBatch& batch : batches_) {
      const ArrowCells cells(root_, path, *batch);
      for (std::int64_t row = 0; row < batch->length && left > 0 && !found.images; ++row) {
        if (cells.is_null(row) || cells.bytes(row).empty()) continue;
        --left;
        found.anything = true;
        found.images = begins_as_image(cells.bytes(row));
        if (found.other == nullptr) found.other = other_image_format(cells.bytes(row));
      }
    }
    return found;
  }

  void add(const ArrowColumn& column, const ArrowOptions& options, const ArrowSchema& schema) {
    ArrowTableCells cells;
    cells.records = info_.records;
    for (const ArrowBatch& batch : batches_) cells.rows.push_back(batch->length);
    for (const ArrowPath& path : column.paths) cells.columns.push_back(cells_of(path));
    if (!column.files.empty()) cells.files = cells_of(column.files);
    std::vector<std::string> classes;
    if (column.is_label()) {
      classes = options.classes.empty() ? find_class_names(schema, column.names.front()) : options.classes;
    }
    fields_.emplace_back(root_, column, std::move(cells), options, classes);
    info_.fields.push_back(fields_.back().field());
    if (column.is_label()) info_.classes = fields_.back().classes();
  }

  // Every field's, if all have one.
  void make_columns() {
    for (const ArrowField& field : fields_) {
      const bool is_label = field.field() == Field{.name = "label", .dtype = DType::kI64, .shape = {}};
      if (is_label) label_ = &field;
      const std::optional<FieldColumn> column = field.column();
      if (column) columns_.push_back(*column);
    }
    if (columns_.size() != fields_.size()) columns_.clear();
  }

  // What the table holds of a field: of a file its path.
  static std::span<const std::byte> bytes_of(const ArrowField& field, const ArrowRow& at) {
    return field.is_file(at) ? field.path(at) : field.value(at);
  }

  std::uint64_t identity() const {
    Fingerprint fingerprint("arrow 1");
    fingerprint.add(info_.records);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    std::uint64_t bytes = 0;
    for (const ArrowField& field : fields_) {
      fingerprint.add(field.field());
      for (std::uint64_t i = 0; i < info_.records; ++i) {
        const std::uint64_t size = field.is_bad(i) ? 0 : bytes_of(field, row_of(i)).size();
        fingerprint.add(size);
        bytes += size;
      }
    }
    const bool is_whole = bytes <= kIdentifiedWhole || info_.records <= kIdentifyingRecords;
    const std::uint64_t count = is_whole ? info_.records : kIdentifyingRecords;
    for (std::uint64_t i = 0; i < count; ++i) {
      const ArrowRow at = row_of(is_whole ? i : i * (info_.records / count));
      for (const ArrowField& field : fields_) {
        if (!field.is_bad(at.record)) fingerprint.add(bytes_of(field, at));
      }
    }
    for (const ArrowFiles& files : files_) {
      for (std::uint64_t i = 0; i < info_.records; ++i) fingerprint.add(files.size(i));
    }
    return fingerprint.value();
  }

  ArrowType root_;
  std::vector<ArrowBatch> batches_;
  std::vector<std::uint64_t> starts_;  // the first record of each batch
  std::vector<ArrowField> fields_;
  std::vector<ArrowFiles> files_;  // of fields_, which stay in place
  std::vector<FieldColumn> columns_;
  const ArrowField* label_ = nullptr;
  bool has_bad_ = false;
  SourceInfo info_;
};

}  // namespace

SourcePtr arrow_table(ArrowArrayStream* stream, ArrowOptions options) {
  ArrowReader reader(options.name, ArrowOwned<ArrowArrayStream>::moved(stream));
  return std::make_shared<ArrowTable>(std::move(reader), options);
}

}  // namespace headrace
