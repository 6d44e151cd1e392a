// The cells of a table that its options choose, column by column.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/tables/csv_columns.h"
#include "headrace/pipeline/sources/tables/csv_labels.h"

namespace headrace {

struct CsvCells {
  struct Row {
    std::string path;  // of its image; empty if the table has no images
    std::uint64_t line = 0, offset = 0;
  };

  std::vector<Row> rows;
  std::vector<CsvCell> labels;        // of each row; none if there is no label
  std::vector<CsvColumn> further;     // in the order of CsvOptions::columns
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
