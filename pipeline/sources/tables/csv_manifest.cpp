#include "headrace/pipeline/sources/tables/csv_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/sample_table.h"
#include "headrace/pipeline/sources/side_by_side.h"
#include "headrace/pipeline/sources/tables/csv_cells.h"
#include "headrace/pipeline/sources/tables/csv_reader.h"

namespace headrace {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::uint64_t kMissing = ~std::uint64_t{0};

class CsvManifest final : public Source {
 public:
  CsvManifest(const std::filesystem::path& csv, const CsvOptions& options) : folder_(csv.parent_path()) {
    CsvCells cells = read_csv_cells(csv, options, CsvImages::kInColumn);
    info_.name = csv.string();
    info_.fields = labelled_image_fields();
    CsvLabels labels;
    if (options.label_type == LabelType::kNumber) {
      info_.fields.pop_back();
      add_field(csv_number_labels(cells, info_.name));
      labels.values.resize(cells.labels.size());
    } else {
      labels = number_labels(options.label_column, cells.labels, info_.name, options.label_type);
    }
    for (Array& column : cells.further) add_field(std::move(column));
    ask_for_remote(cells.rows);
    Fingerprint revision("");
    look_at_files(cells.rows, revision);
    for (std::size_t i = 0; i < cells.rows.size(); ++i) {
      table_.add(cells.rows[i].path, labels.values[i]);
      offsets_.push_back(cells.rows[i].offset);
    }
    if (missing_.size() == cells.rows.size()) fail_without_files();
    info_.revision = revision.value();
    info_.records = table_.size();
    info_.classes = std::move(labels.classes);
    info_.label_count = options.label_count;
    info_.columns = std::move(cells.columns);
    Fingerprint fingerprint("csv manifest 1");
    table_.add_to(fingerprint);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    for (const std::uint64_t size : sizes_) fingerprint.add(size);
    for (const Array& column : columns_) fingerprint.add(column.field).add(column.bytes);
    info_.fingerprint = fingerprint.value();
    table_.share();
    sizes_.share();
    offsets_.share();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    const DataLocation at{.source = info_.name, .record = index, .offset = offsets_[index]};
    if (const auto missing = missing_.find(index); missing != missing_.end()) {
      throw DataError(ErrorCode::kDataCorrupt, missing->second, at,
                      "paths are relative to the folder of the table");
    }
    std::optional<File> file;
    try {
      file = File::open(named_in_table(folder_, std::string(table_.name(index))));
      const auto size = static_cast<std::size_t>(sizes_[index]);
      if (file->size() == size) {
        if (scratch.size() < size) scratch.resize(size);
        file->read_exact(0, std::span(scratch).first(size));
        return view(std::span(scratch).first(size), index);
      }
    } catch (const DataError& error) {
      throw DataError(error.code(), "cannot read " + describe(index), at, error.message());
    }
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("{} has {} bytes, and had {} when the manifest was opened", describe(index),
                                file->size(), sizes_[index]),
                    at, "files must not change while they are read");
  }

  void will_read(std::span<const std::uint64_t> records) const override {
    if (records.empty()) remote::forget_whole();
    for (const std::uint64_t record : records) {
      if (sizes_[record] == kMissing) continue;
      const std::filesystem::path path = named_in_table(folder_, std::string(table_.name(record)));
      if (is_url(path)) remote::will_read_whole(path, sizes_[record]);
    }
  }

  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    if (info_.fields[1].dtype != DType::kI64) return std::nullopt;
    return table_.label_value(index);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return offsets_[index]; }
  std::string describe(std::uint64_t index) const override { return std::string(table_.name(index)); }

 private:
  void add_field(Array column) {
    info_.fields.push_back(column.field);
    columns_.push_back(std::move(column));
  }

  RecordView view(std::span<const std::byte> image, std::uint64_t index) const {
    RecordView view{.fields = {image, table_.label(index)}};
    std::size_t field = info_.fields.size() - columns_.size();
    for (const Array& column : columns_) {
      const std::size_t bytes = column.bytes.size() / static_cast<std::size_t>(info_.records);
      view.fields[field++] = std::span(column.bytes).subspan(static_cast<std::size_t>(index) * bytes, bytes);
    }
    return view;
  }

  // Says, too, how many files lie elsewhere than below the table's folder, which is the user's to allow.
  void ask_for_remote(const std::vector<CsvCells::Row>& rows) {
    std::vector<std::filesystem::path> urls;
    std::uint64_t elsewhere = 0;
    for (const CsvCells::Row& entry : rows) {
      const bool is_below =
          !is_url(entry.path) && !entry.path.starts_with('/') && leads_out(entry.path) == nullptr;
      elsewhere += is_below ? 0 : 1;
      try {
        if (std::filesystem::path path = named_in_table(folder_, entry.path); is_url(path))
          urls.push_back(std::move(path));
      } catch (const DataError&) {  // look_at() says it again
      }
    }
    remote::will_open(urls);
    if (elsewhere > 0) info_.reading = count_of(elsewhere, "image") + " named outside the table's folder";
  }

  // Inspects the files. A missing file is a bad record at every read; a refusal by the system ends it here.
  void look_at_files(const std::vector<CsvCells::Row>& rows, Fingerprint& revision) {
    constexpr std::size_t kBlock = 1024;  // rows
    const std::size_t blocks = (rows.size() + kBlock - 1) / kBlock;
    std::vector<std::vector<FoundFile>> found(blocks);
    sizes_.reserve(rows.size());
    read_side_by_side(
        blocks, /*remote=*/false,
        [&](std::size_t block) {
          for (std::size_t i = block * kBlock; i < std::min(rows.size(), (block + 1) * kBlock); ++i)
            found[block].push_back(look_at(rows[i], i));
        },
        [&](std::size_t block) {
          for (FoundFile& file : std::exchange(found[block], {})) {
            if (file.missing.empty()) revision.add(file.facts.modified_ns);
            if (!file.missing.empty()) missing_[sizes_.size()] = std::move(file.missing);
            sizes_.push_back(file.facts.size);
          }
        });
  }

  struct FoundFile {
    FileFacts facts = {};
    std::string missing = {};  // why it is
  };

  FoundFile look_at(const CsvCells::Row& entry, std::uint64_t record) const {
    try {
      return {.facts = look_at_file(named_in_table(folder_, entry.path))};
    } catch (const DataError& error) {
      std::string why = fmt::format("line {}: '{}' cannot be opened", entry.line, entry.path);
      if (error.code() == ErrorCode::kDataCorrupt) why += ": " + error.message();
      if (error.code() == ErrorCode::kIo) {
        throw DataError(error.code(), why, {.source = info_.name, .record = record, .offset = entry.offset},
                        error.message());
      }
      return {.facts = {.size = kMissing}, .missing = std::move(why)};
    }
  }

  [[noreturn]] void fail_without_files() const {
    throw DataError(
        ErrorCode::kNotFound,
        fmt::format("none of its {} files can be opened; the first: {}", sizes_.size(), missing_.begin()->second),
        {.source = info_.name}, "paths are relative to the folder of the table");
  }

  std::filesystem::path folder_;
  SampleTable table_;
  std::vector<Array> columns_;                    // the last fields
  TableColumn<std::uint64_t> sizes_;              // kMissing if the file could not be opened
  TableColumn<std::uint64_t> offsets_;            // of each record's row in the table
  std::map<std::uint64_t, std::string> missing_;  // reason, by record
  SourceInfo info_;
};

// Returns nothing for what is no text of cells.
std::vector<std::string> names_in_first_line(const std::filesystem::path& path) {
  const File file = File::open(path);
  std::vector<std::byte> start(kHeaderBytes);
  start.resize(file.read_some(0, start));
  std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  text = text.substr(0, text.find('\n'));
  if (text.find('\0') != std::string_view::npos) return {};
  const std::string source = path.string();
  CsvRow row;
  try {
    CsvReader(text, source).next(row);
  } catch (const DataError&) {
    return {};
  }
  return std::move(row.cells);
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

}  // namespace

CsvOptions csv_options(const ColumnOptions& columns, std::uint64_t label_count) {
  CsvOptions options{.label_count = label_count, .columns = columns.columns, .label_type = columns.label_type};
  if (!columns.image_column.empty()) options.path_column = columns.image_column;
  if (!columns.label_column.empty()) options.label_column = columns.label_column;
  return options;
}

bool is_csv_manifest(const std::filesystem::path& path, const ColumnOptions& columns) {
  const std::vector<std::string> names = names_in_first_line(path);
  const CsvOptions options = csv_options(columns, 0);
  return has(names, options.path_column) && has(names, options.label_column);
}

bool is_csv_table(const std::filesystem::path& path, const ColumnOptions& columns) {
  if (!columns.image_column.empty()) return false;
  const std::vector<std::string> names = names_in_first_line(path);
  const CsvOptions options = csv_options(columns, 0);
  if (names.size() < 2 || has(names, options.path_column)) return false;
  return has(names, options.label_column) || (!columns.columns.empty() && path.string().ends_with(".csv"));
}

SourcePtr csv_manifest(const std::filesystem::path& csv, CsvOptions options) {
  return opened_by(CsvManifestCall{{csv, options}}, std::make_shared<CsvManifest>(csv, options));
}

}  // namespace headrace
