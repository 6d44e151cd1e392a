#include "headrace/pipeline/sources/csv_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/csv_labels.h"
#include "headrace/pipeline/sources/csv_table.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/sample_table.h"

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
  std::vector<CsvLabel> labels;  // of each
};

std::size_t column(const CsvRow& header, const std::string& name, const std::string& source) {
  const auto found = std::ranges::find(header.cells, name);
  if (found != header.cells.end()) return static_cast<std::size_t>(found - header.cells.begin());
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("has no column '{}'; its first line names {}", name, fmt::join(header.cells, ", ")),
                  {.source = source}, "the first line names the columns: path,label");
}

Manifest read_manifest(const std::filesystem::path& csv, const CsvOptions& options) {
  const std::vector<std::byte> bytes = read_whole_file(csv);
  const std::string source = csv.string();
  CsvReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, source);
  CsvRow row;
  if (!reader.next(row)) throw DataError(ErrorCode::kDataCorrupt, "is empty, no CSV manifest", {.source = source});
  const std::size_t path = column(row, options.path_column, source),
                    label = column(row, options.label_column, source);
  const std::size_t columns = row.cells.size();
  Manifest manifest;
  while (reader.next(row)) {
    if (row.cells.size() != columns || row.cells[path].empty() || row.cells[label].empty()) {
      throw DataError(
          ErrorCode::kDataCorrupt,
          row.cells.size() != columns
              ? fmt::format("line {} has {} fields where the first line has {}", row.line, row.cells.size(),
                            columns)
              : fmt::format("line {} has an empty {}", row.line, row.cells[path].empty() ? "path" : "label"),
          {.source = source, .record = manifest.entries.size(), .offset = row.offset},
          "put text with commas in quotes");
    }
    manifest.entries.push_back({.path = std::move(row.cells[path]), .line = row.line, .offset = row.offset});
    manifest.labels.push_back(
        {.text = std::move(row.cells[label]), .line = row.line, .quoted = row.quoted[label]});
  }
  if (manifest.entries.empty()) throw DataError(ErrorCode::kDataCorrupt, "names no image", {.source = source});
  return manifest;
}

class CsvManifest final : public Source {
 public:
  CsvManifest(const std::filesystem::path& csv, const CsvOptions& options) : folder_(csv.parent_path()) {
    const Manifest manifest = read_manifest(csv, options);
    info_.name = csv.string();
    CsvLabels labels = number_labels(manifest.labels, info_.name);
    Fingerprint revision("");
    for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
      table_.add(manifest.entries[i].path, labels.values[i]);
      offsets_.push_back(manifest.entries[i].offset);
      look_at(manifest.entries[i], revision);
    }
    if (missing_.size() == manifest.entries.size()) fail_without_files();
    info_.revision = revision.value();
    info_.records = table_.size();
    info_.fields = labelled_image_fields();
    info_.classes = std::move(labels.classes);
    info_.label_count = options.label_count;
    Fingerprint fingerprint("csv manifest 1");
    table_.add_to(fingerprint);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    for (const std::uint64_t size : sizes_) fingerprint.add(size);
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
        return {.fields = {std::span<const std::byte>(scratch).first(size), table_.label(index)}};
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
    return table_.label_value(index);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return offsets_[index]; }
  std::string describe(std::uint64_t index) const override { return std::string(table_.name(index)); }

 private:
  // A file that is not there is a bad record, whenever it is read; one that the system refuses ends it here.
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
  std::vector<std::uint64_t> sizes_;              // kMissing where the file could not be opened
  std::vector<std::uint64_t> offsets_;            // of each record's row in the table
  std::map<std::uint64_t, std::string> missing_;  // why, by record
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
  }
  SourcePtr open() const { return csv_manifest(path, options); }
};

}  // namespace

bool is_csv_manifest(const std::filesystem::path& path) {
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
  const auto has = [&](const char* name) { return std::ranges::find(row.cells, name) != row.cells.end(); };
  return has("path") && has("label");
}

SourcePtr csv_manifest(const std::filesystem::path& csv, CsvOptions options) {
  return opened_by(CsvManifestCall{.path = csv, .options = options}, std::make_shared<CsvManifest>(csv, options));
}

SourceOriginPtr csv_manifest_origin() { return std::make_shared<const CallOrigin<CsvManifestCall>>(); }

}  // namespace headrace
