#include "headrace/pipeline/sources/tables/csv_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "headrace/devices/base/did_you_mean.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/tables/csv_reader.h"

namespace headrace {
namespace {

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
class TakenColumns {
 public:
  struct Further {
    ColumnChoice choice;
    std::vector<std::size_t> places;
  };

  TakenColumns(const CsvRow& header, const CsvOptions& options, CsvImages images, const std::string& source)
      : header_(header), source_(source) {
    const bool has_label = std::ranges::count(header.cells, options.label_column) > 0;
    if (images == CsvImages::kInColumn) path = find(options.path_column, "ColumnOptions::image_column");
    if (images == CsvImages::kInColumn || has_label)
      label = find(options.label_column, "ColumnOptions::label_column");
    for (const std::string& text : options.columns) add(text);
    check_number();
  }

  // Takes every column of numbers that is not taken yet.
  void add_numbers(const std::vector<CsvKind>& kinds) {
    for (std::size_t place = 0; place < kinds.size(); ++place) {
      const std::string& name = header_.cells[place];
      const bool usable = !name.empty() && std::ranges::count(header_.cells, name) == 1 && place != label;
      if (usable && std::string_view(kinds[place].name()) != "text") {
        further.push_back({.choice = {.field = name, .columns = {name}}, .places = {place}});
      }
    }
    check_number();
  }

  std::string field_of(std::size_t place) const {
    if (place == path) return "image";
    if (place == label) return "label";
    for (const Further& one : further) {
      if (std::ranges::count(one.places, place) > 0) return one.choice.field;
    }
    return {};
  }

  std::optional<std::size_t> path, label;
  std::vector<Further> further;

 private:
  void check_number() const {
    if (further.size() + (path ? 1U : 0U) + (label ? 1U : 0U) <= kMaxFields) return;
    throw ConfigError(fmt::format("{}: {} further columns: a record has at most {} fields, the label among them",
                                  source_, further.size(), kMaxFields),
                      "make one field of several columns of numbers: NAME=COLUMN+COLUMN");
  }

  std::size_t find(const std::string& name, std::string_view option) const {
    return find_column(header_, name, option, source_);
  }

  void add(const std::string& text) {
    const auto is_column = [&](const std::string& name) { return std::ranges::count(header_.cells, name) > 0; };
    Further one{.choice = parse_column_choice(text, is_column, source_), .places = {}};
    for (const std::string& name : one.choice.columns) {
      const std::size_t place = find(name, "ColumnOptions::columns");
      const bool twice = !field_of(place).empty() || std::ranges::count(one.places, place) > 0;
      if (twice) refuse(name, "it is taken already");
      one.places.push_back(place);
    }
    const std::string& field = one.choice.field;
    const auto same = [&](const Further& other) { return other.choice.field == field; };
    if (field == "image" || field == "label" || std::ranges::any_of(further, same)) {
      refuse(field, "a field is called so already");
    }
    further.push_back(std::move(one));
  }

  [[noreturn]] void refuse(const std::string& name, const char* why) const {
    throw ConfigError(fmt::format("{}: the column '{}' cannot be taken along: {}", source_, name, why),
                      "each further column is a field of its name; FIELD=COLUMN gives it another one");
  }

  const CsvRow& header_;
  const std::string& source_;
};

CsvCell cell_of(const CsvRow& row, std::size_t place) {
  return {.text = row.cells[place], .line = row.line, .quoted = row.quoted[place]};
}

void check_row(const CsvRow& row, const CsvRow& header, const TakenColumns& taken, const DataLocation& at) {
  if (row.cells.size() != header.cells.size()) {
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("line {} has {} fields where the first line has {}", row.line, row.cells.size(),
                                header.cells.size()),
                    at, "put text with commas in quotes");
  }
  for (const std::optional<std::size_t> place : {taken.path, taken.label}) {
    if (!place || !row.cells[*place].empty()) continue;
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("line {} has an empty {}", row.line, place == taken.path ? "path" : "label"), at,
                    "put text with commas in quotes");
  }
}

}  // namespace

CsvCells read_csv_cells(const std::filesystem::path& csv, const CsvOptions& options, CsvImages images) {
  const std::vector<std::byte> bytes = read_whole_file(csv);
  const std::string source = csv.string();
  CsvReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, source);
  CsvRow header;
  if (!reader.next(header)) {
    throw DataError(ErrorCode::kDataCorrupt, "is empty, no CSV manifest", {.source = source},
                    "name the columns in its first line: path,label");
  }
  TakenColumns taken(header, options, images, source);
  CsvCells cells;
  std::vector<std::vector<CsvCell>> of_column(header.cells.size());
  std::vector<CsvKind> kinds(header.cells.size());
  for (CsvRow row; reader.next(row);) {
    check_row(row, header, taken, {.source = source, .record = cells.rows.size(), .offset = row.offset});
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      kinds[i].look_at(row.cells[i]);
      if (i != taken.path) of_column[i].push_back(cell_of(row, i));
    }
    std::string path = taken.path ? std::move(row.cells[*taken.path]) : std::string();
    cells.rows.push_back({.path = std::move(path), .line = row.line, .offset = row.offset});
  }
  if (cells.rows.empty()) {
    throw DataError(ErrorCode::kDataCorrupt,
                    images == CsvImages::kInColumn ? "names no image" : "has no row below its first line",
                    {.source = source}, "add a line for each record below the first line");
  }
  if (images == CsvImages::kNone && options.columns.empty()) taken.add_numbers(kinds);
  if (taken.label) cells.labels = std::move(of_column[*taken.label]);
  for (const TakenColumns::Further& one : taken.further) {
    std::vector<const std::vector<CsvCell>*> columns;
    for (const std::size_t place : one.places) columns.push_back(&of_column[place]);
    cells.further.push_back(make_csv_column(one.choice, columns, source));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    cells.columns.push_back({.name = header.cells[i], .holds = kinds[i].name(), .field = taken.field_of(i)});
  }
  return cells;
}

Array csv_number_labels(const CsvCells& cells, const std::string& source) {
  return float_column("label", cells.labels, source);
}

}  // namespace headrace
