#include "headrace/pipeline/sources/tables/csv_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/tables/csv_labels.h"
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

[[noreturn]] void refuse_cell(const std::string& name, const CsvCell& cell, const std::string& source,
                              const std::string& what, const std::string& hint) {
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("line {}: '{}' in column '{}' {}", cell.line, cell.text, name, what),
                  {.source = source}, hint);
}

template <typename Value>
std::vector<std::byte> bytes_of_values(const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Collects numbers as integers and as floats until it is known which they are.
class CellNumbers {
 public:
  CellNumbers(std::string column, const std::string& source, bool only_floats)
      : column_(std::move(column)), source_(source), plain_(!only_floats) {}

  void add(std::string_view text, const CsvCell& cell) {
    const std::optional<PlainNumber> number = parse_plain_number(text);
    if (!number) {
      refuse_cell(column_, cell, source_, text.empty() ? "is empty" : "is no number",
                  fmt::format("a column that is taken along holds a number in every row; for text say '{0}:text', "
                              "for the names of classes '{0}:class'",
                              column_));
    }
    plain_ = plain_ && number->plain;
    integers_.push_back(number->integer.value_or(0));
    const bool fits = std::abs(number->value) <= std::numeric_limits<float>::max();
    if (!fits && !plain_)
      refuse_cell(column_, cell, source_, "is beyond what a float32 holds", "scale the column");
    floats_.push_back(fits ? static_cast<float>(number->value) : 0);
  }
  std::size_t size() const noexcept { return floats_.size(); }

  Array field(const std::string& name, const Shape& shape) const {
    if (plain_) {
      return {.field = {.name = name, .dtype = DType::kI64, .shape = shape}, .bytes = bytes_of_values(integers_)};
    }
    return {.field = {.name = name, .dtype = DType::kF32, .shape = shape}, .bytes = bytes_of_values(floats_)};
  }

 private:
  std::string column_;
  const std::string& source_;
  bool plain_;
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
};

Array numbers_of(const ColumnChoice& choice, std::span<const std::vector<CsvCell>* const> columns,
                 const std::string& source, bool only_floats) {
  CellNumbers numbers(choice.columns.front(), source, only_floats);
  for (std::size_t row = 0; row < columns.front()->size(); ++row) {
    for (const std::vector<CsvCell>* column : columns) numbers.add((*column)[row].text, (*column)[row]);
  }
  const auto width = static_cast<std::int64_t>(columns.size());
  return numbers.field(choice.field, width == 1 ? Shape{} : Shape{width});
}

Array lists_of(const ColumnChoice& choice, const std::vector<CsvCell>& column, const std::string& source) {
  constexpr std::string_view kBetween = " \t,;";
  CellNumbers numbers(choice.columns.front(), source, false);
  std::size_t length = 0;
  for (std::size_t row = 0; row < column.size(); ++row) {
    const std::size_t before = numbers.size();
    std::string_view text = column[row].text;
    for (;;) {
      text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
      if (text.empty()) break;
      numbers.add(text.substr(0, text.find_first_of(kBetween)), column[row]);
      text.remove_prefix(std::min(text.find_first_of(kBetween), text.size()));
    }
    const std::size_t count = numbers.size() - before;
    if (row == 0) length = count;
    if (count == length && count > 0) continue;
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("line {}: column '{}' has {}, the first row {}", column[row].line,
                                choice.columns.front(), count_of(count, "number"), length),
                    {.source = source}, "a list has equally many numbers in every row, at least one");
  }
  return numbers.field(choice.field, {static_cast<std::int64_t>(length)});
}

Array texts_of(const ColumnChoice& choice, const std::vector<CsvCell>& column, const std::string& source) {
  std::size_t longest = 1;
  for (const CsvCell& cell : column) {
    longest = std::max(longest, cell.text.size());
    if (cell.text.find('\0') == std::string::npos) continue;
    refuse_cell(choice.columns.front(), cell, source, "holds a NUL byte, which is no text",
                "remove it from the table");
  }
  Array array{.field = {.name = choice.field, .dtype = DType::kU8, .shape = {static_cast<std::int64_t>(longest)}},
              .bytes = std::vector<std::byte>(longest * column.size())};
  for (std::size_t row = 0; row < column.size(); ++row) {
    std::ranges::copy(std::as_bytes(std::span(column[row].text)),
                      array.bytes.begin() + static_cast<std::ptrdiff_t>(row * longest));
  }
  return array;
}

CsvColumn classes_of(const ColumnChoice& choice, const std::vector<CsvCell>& column, const std::string& source) {
  CsvLabels labels = number_labels(choice.columns.front(), column, source, LabelType::kClass);
  return {.array = {.field = {.name = choice.field, .dtype = DType::kI64, .shape = {}},
                    .bytes = bytes_of_values(labels.values)},
          .classes = std::move(labels.classes)};
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

CsvColumn make_csv_column(const ColumnChoice& choice, std::span<const std::vector<CsvCell>* const> columns,
                          const std::string& source) {
  switch (choice.type) {
    case ColumnType::kText: return {.array = texts_of(choice, *columns.front(), source)};
    case ColumnType::kList: return {.array = lists_of(choice, *columns.front(), source)};
    case ColumnType::kClass: return classes_of(choice, *columns.front(), source);
    case ColumnType::kMask:
      throw ConfigError(fmt::format("{}: the column '{}' cannot be a mask", source, choice.columns.front()),
                        "masks are members of archives, files beside images, or features of TFRecords");
    case ColumnType::kNumber: break;
  }
  return {.array = numbers_of(choice, columns, source, false)};
}

Array float_column(const std::string& name, const std::vector<CsvCell>& column, const std::string& source) {
  const std::vector<CsvCell>* columns[] = {&column};
  return numbers_of({.field = name, .columns = {name}}, columns, source, true);
}

}  // namespace headrace
