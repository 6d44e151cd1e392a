#include "headrace/pipeline/sources/tables/csv_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/cell_numbers.h"
#include "headrace/pipeline/sources/columns.h"
#include "headrace/pipeline/sources/tables/csv_reader.h"

namespace headrace {
namespace {

// Says what cells of text can be.
std::vector<NamedColumn> header_columns(const CsvRow& header) {
  std::vector<NamedColumn> columns;
  for (const std::string& name : header.cells) {
    columns.push_back({.name = name,
                       .holds = "text",
                       .types = {ColumnType::kNumber, ColumnType::kText, ColumnType::kClass, ColumnType::kList},
                       .is_number = true});
  }
  return columns;
}

// The taken columns, by their place in a row.
struct TakenColumns {
  TakenColumns(const CsvRow& header, const CsvOptions& options, CsvImages images, const std::string& source)
      : chooser(source, {.where = " in its first line"}, header_columns(header)) {
    const auto take = [&](const char* field, const std::string& name, std::string_view option) {
      const std::size_t place = chooser.require(name, option);
      chooser.add(field, {place});
      return place;
    };
    if (images == CsvImages::kInColumn) path = take("image", options.path_column, "ColumnOptions::image_column");
    if (images == CsvImages::kInColumn || chooser.find(options.label_column)) {
      label = take("label", options.label_column, "ColumnOptions::label_column");
    }
    chooser.reserve("image");
    chooser.reserve("label");
    for (const std::string& text : options.columns) {
      further.push_back(chooser.take(text));
      for (const std::size_t place : further.back().columns) {
        if (place == path || place == label)
          chooser.refuse(place, "it is taken already", "it is a field as it is");
      }
    }
  }

  // Takes every column of numbers that is not taken yet.
  void add_numbers(const std::vector<CellKind>& kinds) {
    for (std::size_t place = 0; place < kinds.size(); ++place) {
      const std::string& name = chooser.columns()[place].name;
      const bool usable = !name.empty() && std::ranges::count(chooser.columns(), name, &NamedColumn::name) == 1;
      if (!usable || place == label || !kinds[place].are_numbers()) continue;
      further.push_back({.field = name, .columns = {place}});
      chooser.add(name, {place});
    }
  }

  ColumnChooser chooser;
  std::optional<std::size_t> path, label;
  std::vector<ChosenField> further;
};

// A column's name and its cells, by row.
struct CsvColumnCells {
  std::string name;
  const std::vector<CsvCell>* cells;
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
  throw DataError(ErrorCode::kDataCorrupt, fmt::format("line {}: column '{}' {}", cell.line, name, what),
                  {.source = source}, hint);
}

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

// Calls add(cell) for a cell of numbers.
template <typename Add>
void add_numbers(const CsvColumnCells& column, const CsvCell& cell, const std::string& source, const Add& add) {
  try {
    add(cell);
  } catch (const Error& error) {
    refuse_cell(column.name, cell, source, error.message(),
                fmt::format("a column that is taken along holds a number in every row; for text say '{0}:text', "
                            "for the names of classes '{0}:class'",
                            column.name));
  }
}

Array array_of(const std::string& field, const Shape& shape, const CellNumbers& numbers, DType type) {
  return {.field = {.name = field, .dtype = type, .shape = shape}, .bytes = copy_of(numbers.bytes(type))};
}

CellNumbers numbers_in(std::span<const CsvColumnCells> columns, const std::string& source) {
  CellNumbers numbers;
  for (std::size_t row = 0; row < columns.front().cells->size(); ++row) {
    for (const CsvColumnCells& column : columns) {
      add_numbers(column, (*column.cells)[row], source,
                  [&](const CsvCell& cell) { numbers.add_number(cell.text); });
    }
  }
  return numbers;
}

Array lists_of(const std::string& field, const CsvColumnCells& column, const std::string& source) {
  CellNumbers numbers;
  std::size_t length = 0;
  for (const CsvCell& cell : *column.cells) {
    const std::size_t before = numbers.size();
    add_numbers(column, cell, source, [&](const CsvCell& one) { numbers.add_text(one.text); });
    const std::size_t count = numbers.size() - before;
    if (before == 0) length = count;
    if (count == length && count > 0) continue;
    refuse_cell(column.name, cell, source,
                fmt::format("has {}, the first row {}", count_of(count, "number"), length),
                "a list has equally many numbers in every row, at least one");
  }
  return array_of(field, {static_cast<std::int64_t>(length)}, numbers, numbers.type());
}

Array texts_of(const std::string& field, const CsvColumnCells& column, const std::string& source) {
  std::size_t longest = 1;
  for (const CsvCell& cell : *column.cells) {
    longest = std::max(longest, cell.text.size());
    if (cell.text.find('\0') == std::string::npos) continue;
    refuse_cell(column.name, cell, source, "holds a NUL byte, which is no text", "remove it from the table");
  }
  Array array{.field = text_field(field), .bytes = std::vector<std::byte>(longest * column.cells->size())};
  array.field.shape = {static_cast<std::int64_t>(longest)};
  auto to = array.bytes.begin();
  for (const CsvCell& cell : *column.cells) {
    std::ranges::copy(std::as_bytes(std::span(cell.text)), to);
    to += static_cast<std::ptrdiff_t>(longest);
  }
  return array;
}

// Returns the field of columns:
//  - kNumber: i64 if all are written as integers, else f32, rounded to nearest; of n columns a vector of n
//  - kList: numbers with blanks, commas or semicolons between them, equally many in every row
//  - kClass: i64, as number_labels() numbers the classes
//  - kText: its bytes, u8, with zeros after them up to the longest
// Throws DataError naming `source` and the line of a cell that is none of this.
Array array_of(const ChosenField& chosen, std::span<const CsvColumnCells> columns, const std::string& source) {
  const CsvColumnCells& first = columns.front();
  switch (chosen.type) {
    case ColumnType::kText: return texts_of(chosen.field, first, source);
    case ColumnType::kList: return lists_of(chosen.field, first, source);
    case ColumnType::kClass: {
      const CsvLabels labels = number_labels(first.name, *first.cells, source, LabelType::kClass);
      return {.field = {.name = chosen.field, .dtype = DType::kI64, .shape = {}},
              .bytes = copy_of(std::as_bytes(std::span(labels.values)))};
    }
    case ColumnType::kNumber:
    case ColumnType::kMask: break;
  }
  const CellNumbers numbers = numbers_in(columns, source);
  const auto width = static_cast<std::int64_t>(columns.size());
  return array_of(chosen.field, width == 1 ? Shape{} : Shape{width}, numbers, numbers.type());
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
  std::vector<CellKind> kinds(header.cells.size());
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
  for (const ChosenField& chosen : taken.further) {
    std::vector<CsvColumnCells> columns;
    for (const std::size_t place : chosen.columns) columns.push_back({header.cells[place], &of_column[place]});
    cells.further.push_back(array_of(chosen, columns, source));
  }
  cells.columns = taken.chooser.listed();
  for (std::size_t i = 0; i < kinds.size(); ++i) cells.columns[i].holds = kinds[i].name();
  return cells;
}

Array csv_number_labels(const CsvCells& cells, const std::string& source) {
  const CsvColumnCells column{"label", &cells.labels};
  return array_of("label", {}, numbers_in({&column, 1}, source), DType::kF32);
}

}  // namespace headrace
