// The cells of a table that its options choose, column by column, and its labels as class numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"

namespace headrace {

struct CsvCell {
  std::string text;  // as written
  std::uint64_t line = 0;
  bool quoted = false;
};

struct CsvLabels {
  std::vector<std::int64_t> values;  // by row
  std::vector<std::string> classes;  // by value; none if the labels are integers
};

// Converts a column of labels. Integers in any notation (7, 07, 7.0, 7e0, "7") keep their value; names give
// classes in bytewise order. In a column of both kinds all are names if every one is in quotes; otherwise throws
// DataError naming `source` and the line of the odd one. Other numbers are a ConfigError that says which option to
// set. With kClass, numbers of any kind give classes in numeric order, named as first written.
CsvLabels number_labels(const std::string& column_name, const std::vector<CsvCell>& column,
                        const std::string& source, LabelType type = LabelType::kAuto);

struct CsvCells {
  struct Row {
    std::string path;  // of its image; empty if the table has no images
    std::uint64_t line = 0, offset = 0;
  };

  std::vector<Row> rows;
  std::vector<CsvCell> labels;        // of each row; none if there is no label
  std::vector<Array> further;         // in the order of CsvOptions::columns
  std::vector<SourceColumn> columns;  // of the table
};

enum class CsvImages { kInColumn, kNone };

// Reads the table at `csv`. With images it must have the columns CsvOptions::path_column and label_column.
// Without, the label may be missing, and if CsvOptions::columns is empty, every column of numbers is taken. Throws
// DataError naming the line, or ConfigError if a chosen column cannot be a field.
CsvCells read_csv_cells(const std::filesystem::path& csv, const CsvOptions& options, CsvImages images);

// Returns the labels as the field "label" if they are numbers to predict.
Array csv_number_labels(const CsvCells& cells, const std::string& source);

}  // namespace headrace
