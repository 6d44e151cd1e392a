#include "headrace/pipeline/sources/tables/csv_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "headrace/devices/base/did_you_mean.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/sample_table.h"
#include "headrace/pipeline/sources/tables/csv_labels.h"
#include "headrace/pipeline/sources/tables/csv_table.h"

namespace headrace {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::uint64_t kMissing = ~std::uint64_t{0};

struct Entry {
  std::string path;
  std::uint64_t line, offset;
};
struct Manifest {
  std::vector<Entry> entries;
  std::vector<CsvCell> labels;                // of each
  std::vector<std::vector<CsvCell>> further;  // by column of CsvOptions::columns
  std::vector<SourceColumn> columns;          // of the table
};

// Finds a column; `option` is the option that names it.
std::size_t find_column(const CsvRow& header, const std::string& name, std::string_view option,
                        const std::string& source) {
  const auto found = std::ranges::find(header.cells, name);
  if (found == header.cells.end()) {
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("has no column '{}'; its first line names {}{}", name,
                                fmt::join(header.cells, ", "), did_you_mean(name, header.cells)),
                    {.source = source}, "name one of these with " + named_or(option, "the options for columns"));
  }
  if (std::ranges::count(header.cells, name) > 1) {
    throw DataError(ErrorCode::kDataCorrupt, fmt::format("has more than one column '{}'", name),
                    {.source = source}, "give each column that is taken a name of its own in the first line");
  }
  return static_cast<std::size_t>(found - header.cells.begin());
}

// The taken columns, by their place in a row.
struct TakenColumns {
  TakenColumns(const CsvRow& header, const CsvOptions& options, const std::string& source)
      : path(find_column(header, options.path_column, "ColumnOptions::image", source)),
        label(find_column(header, options.label_column, "ColumnOptions::label", source)) {
    if (options.columns.size() > kMaxFields - 2) {
      throw ConfigError(
          fmt::format("{}: {} further columns: a record has at most {} fields, the image and the label "
                      "among them",
                      source, options.columns.size(), kMaxFields));
    }
    for (const std::string& name : options.columns) {
      const std::size_t place = find_column(header, name, "ColumnOptions::more", source);
      const bool twice = place == path || place == label || std::ranges::count(further, place) > 0;
      if (twice || name == "image" || name == "label") {
        throw ConfigError(fmt::format("{}: the column '{}' cannot be taken along: {}", source, name,
                                      twice ? "it is taken already" : "a field is called so already"),
                          "each further column is a field of its name");
      }
      further.push_back(place);
    }
  }

  std::string field_of(std::size_t place, const CsvRow& header) const {
    if (place == path) return "image";
    if (place == label) return "label";
    return std::ranges::count(further, place) > 0 ? header.cells[place] : std::string();
  }

  std::size_t path, label;
  std::vector<std::size_t> further;
};

CsvCell cell_of(CsvRow& row, std::size_t place) {
  return {.text = std::move(row.cells[place]), .line = row.line, .quoted = row.quoted[place]};
}

void check_row(const CsvRow& row, const CsvRow& header, const TakenColumns& taken, const DataLocation& at) {
  if (row.cells.size() != header.cells.size()) {
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("line {} has {} fields where the first line has {}", row.line, row.cells.size(),
                                header.cells.size()),
                    at, "put text with commas in quotes");
  }
  for (const std::size_t place : {taken.path, taken.label}) {
    if (!row.cells[place].empty()) continue;
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("line {} has an empty {}", row.line, place == taken.path ? "path" : "label"), at,
                    "put text with commas in quotes");
  }
}

Manifest read_manifest(const std::filesystem::path& csv, const CsvOptions& options) {
  const std::vector<std::byte> bytes = read_whole_file(csv);
  const std::string source = csv.string();
  CsvReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, source);
  CsvRow row;
  if (!reader.next(row)) {
    throw DataError(ErrorCode::kDataCorrupt, "is empty, no CSV manifest", {.source = source},
                    "name the columns in its first line: path,label");
  }
  const CsvRow header = row;
  const TakenColumns taken(header, options, source);
  Manifest manifest;
  manifest.further.resize(taken.further.size());
  std::vector<CsvKind> kinds(header.cells.size());
  while (reader.next(row)) {
    check_row(row, header, taken, {.source = source, .record = manifest.entries.size(), .offset = row.offset});
    for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].look_at(row.cells[i]);
    manifest.labels.push_back(cell_of(row, taken.label));
    for (std::size_t i = 0; i < taken.further.size(); ++i) {
      manifest.further[i].push_back(cell_of(row, taken.further[i]));
    }
    manifest.entries.push_back({.path = std::move(row.cells[taken.path]), .line = row.line, .offset = row.offset});
  }
  if (manifest.entries.empty()) {
    throw DataError(ErrorCode::kDataCorrupt, "names no image", {.source = source},
                    "add a line for each image below the first line");
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    manifest.columns.push_back(
        {.name = header.cells[i], .holds = kinds[i].name(), .field = taken.field_of(i, header)});
  }
  return manifest;
}

class CsvManifest final : public Source {
 public:
  CsvManifest(const std::filesystem::path& csv, const CsvOptions& options) : folder_(csv.parent_path()) {
    Manifest manifest = read_manifest(csv, options);
    info_.name = csv.string();
    info_.fields = labelled_image_fields();
    const bool is_number = options.label_type == LabelType::kNumber;
    CsvLabels labels;
    if (is_number) {
      add_numbers("label", manifest.labels, true);
      labels.values.resize(manifest.labels.size());
    } else {
      labels = number_labels(options.label_column, manifest.labels, info_.name, options.label_type);
    }
    for (std::size_t i = 0; i < options.columns.size(); ++i) {
      add_numbers(options.columns[i], manifest.further[i], false);
    }
    Fingerprint revision("");
    for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
      table_.add(manifest.entries[i].path, labels.values[i]);
      offsets_.push_back(manifest.entries[i].offset);
      look_at(manifest.entries[i], revision);
    }
    if (missing_.size() == manifest.entries.size()) fail_without_files();
    info_.revision = revision.value();
    info_.records = table_.size();
    info_.classes = std::move(labels.classes);
    info_.label_count = options.label_count;
    info_.columns = std::move(manifest.columns);
    Fingerprint fingerprint("csv manifest 1");
    table_.add_to(fingerprint);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    for (const std::uint64_t size : sizes_) fingerprint.add(size);
    for (const Array& numbers : numbers_) fingerprint.add(numbers.field).add(numbers.bytes);
    info_.fingerprint = fingerprint.value();
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
      file = File::open(folder_ / table_.name(index));
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

  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    if (info_.fields[1].dtype != DType::kI64) return std::nullopt;
    return table_.label_value(index);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return offsets_[index]; }
  std::string describe(std::uint64_t index) const override { return std::string(table_.name(index)); }

 private:
  // Adds a column of numbers, as the label or as a further field.
  void add_numbers(const std::string& name, const std::vector<CsvCell>& column, bool is_label) {
    numbers_.push_back(number_field(name, column, info_.name, is_label));
    if (is_label) info_.fields.pop_back();
    info_.fields.push_back(numbers_.back().field);
  }

  RecordView view(std::span<const std::byte> image, std::uint64_t index) const {
    RecordView view{.fields = {image, table_.label(index)}};
    std::size_t field = info_.fields.size() - numbers_.size();
    for (const Array& numbers : numbers_) {
      const std::size_t bytes = size_of(numbers.field.dtype);
      view.fields[field++] = std::span(numbers.bytes).subspan(static_cast<std::size_t>(index) * bytes, bytes);
    }
    return view;
  }

  // Inspects a file. A missing file is a bad record at every read; a refusal by the system ends it here.
  void look_at(const Entry& entry, Fingerprint& revision) {
    try {
      const File file = File::open(folder_ / entry.path);
      sizes_.push_back(file.size());
      revision.add(file.modified_ns());
    } catch (const DataError& error) {
      const std::string why = fmt::format("line {}: '{}' cannot be opened", entry.line, entry.path);
      if (error.code() == ErrorCode::kIo) {
        throw DataError(error.code(), why, {.source = info_.name, .record = sizes_.size(), .offset = entry.offset},
                        error.message());
      }
      missing_[sizes_.size()] = why;
      sizes_.push_back(kMissing);
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
  std::vector<Array> numbers_;                    // the last fields
  std::vector<std::uint64_t> sizes_;              // kMissing if the file could not be opened
  std::vector<std::uint64_t> offsets_;            // of each record's row in the table
  std::map<std::uint64_t, std::string> missing_;  // reason, by record
  SourceInfo info_;
};

struct CsvManifestCall {
  static constexpr const char* kName = "csv_manifest";

  std::filesystem::path path = {};
  CsvOptions options = {};

  void show(OptionVisitor& visit) {
    visit("path", path);
    visit("path_column", options.path_column);
    visit("label_column", options.label_column);
    visit("label_count", options.label_count);
    visit("columns", options.columns);
    show_label_type(options.label_type, visit);
  }
  SourcePtr open() const { return csv_manifest(path, options); }
};

}  // namespace

CsvOptions csv_options(const ColumnOptions& columns, std::uint64_t label_count) {
  CsvOptions options{.label_count = label_count, .columns = columns.more, .label_type = columns.label_type};
  if (!columns.image.empty()) options.path_column = columns.image;
  if (!columns.label.empty()) options.label_column = columns.label;
  return options;
}

bool is_csv_manifest(const std::filesystem::path& path, const ColumnOptions& columns) {
  const File file = File::open(path);
  std::vector<std::byte> start(kHeaderBytes);
  start.resize(file.read_some(0, start));
  std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  text = text.substr(0, text.find('\n'));
  if (text.find('\0') != std::string_view::npos) return false;
  const std::string source = path.string();
  CsvRow row;
  try {
    if (!CsvReader(text, source).next(row)) return false;
  } catch (const DataError&) {
    return false;
  }
  const auto has = [&](const std::string& name) { return std::ranges::find(row.cells, name) != row.cells.end(); };
  const CsvOptions options = csv_options(columns, 0);
  return has(options.path_column) && has(options.label_column);
}

SourcePtr csv_manifest(const std::filesystem::path& csv, CsvOptions options) {
  return opened_by(CsvManifestCall{.path = csv, .options = options}, std::make_shared<CsvManifest>(csv, options));
}

SourceOriginPtr csv_manifest_origin() { return std::make_shared<const CallOrigin<CsvManifestCall>>(); }

}  // namespace headrace
