#include "headrace/pipeline/sources/csv_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/csv_table.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/sample_table.h"

namespace headrace {
namespace {

constexpr std::size_t kHeaderBytes = 4096;

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Entry {
  std::string path, label;  // as written
  std::uint64_t line;
};
using Manifest = std::vector<Entry>;

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
          {.source = source, .record = manifest.size()}, "put text with commas in quotes");
    }
    manifest.push_back(
        {.path = std::move(row.cells[path]), .label = std::move(row.cells[label]), .line = row.line});
  }
  if (manifest.empty()) throw DataError(ErrorCode::kDataCorrupt, "names no image", {.source = source});
  return manifest;
}

// Labels that are all integers, or the names of classes.
class Labels {
 public:
  Labels(const Manifest& manifest, const std::string& source) {
    names_ = !parse_integer(manifest.front().label).has_value();
    for (const Entry& entry : manifest) {
      if (names_) {
        classes_.push_back(entry.label);
      } else if (!parse_integer(entry.label)) {
        throw DataError(
            ErrorCode::kDataCorrupt,
            fmt::format("line {}: the label '{}' is no integer, and those before it are", entry.line, entry.label),
            {.source = source}, "use integers or class names throughout");
      }
    }
    std::ranges::sort(classes_);
    const auto repeated = std::ranges::unique(classes_);
    classes_.erase(repeated.begin(), repeated.end());
  }

  std::int64_t value(const std::string& label) const {
    if (!names_) return *parse_integer(label);
    return std::ranges::lower_bound(classes_, label) - classes_.begin();
  }
  const std::vector<std::string>& classes() const noexcept { return classes_; }

 private:
  bool names_ = false;
  std::vector<std::string> classes_;
};

class CsvManifest final : public Source {
 public:
  CsvManifest(const std::filesystem::path& csv, const CsvOptions& options) : folder_(csv.parent_path()) {
    const Manifest manifest = read_manifest(csv, options);
    info_.name = csv.string();
    const Labels labels(manifest, info_.name);
    Fingerprint revision("");
    for (const Entry& entry : manifest) {
      table_.add(entry.path, labels.value(entry.label));
      const File file = open_file(entry);
      sizes_.push_back(file.size());
      revision.add(file.modified_ns());
    }
    info_.revision = revision.value();
    info_.records = table_.size();
    info_.fields = labelled_image_fields();
    info_.classes = labels.classes();
    Fingerprint fingerprint("csv manifest 1");
    table_.add_to(fingerprint);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    for (const std::uint64_t size : sizes_) fingerprint.add(size);
    info_.fingerprint = fingerprint.value();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    const DataLocation at{.source = info_.name, .record = index};
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

  std::string describe(std::uint64_t index) const override { return std::string(table_.name(index)); }

 private:
  File open_file(const Entry& entry) const {
    try {
      return File::open(folder_ / entry.path);
    } catch (const DataError& error) {
      throw DataError(error.code(), fmt::format("line {}: '{}' cannot be opened", entry.line, entry.path),
                      {.source = info_.name, .record = sizes_.size()}, error.message());
    }
  }

  std::filesystem::path folder_;
  SampleTable table_;
  std::vector<std::uint64_t> sizes_;
  SourceInfo info_;
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
  return std::make_shared<CsvManifest>(csv, options);
}

}  // namespace headrace
