// The cells of a table that its options choose, column by column.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/column_choice.h"
#include "headrace/pipeline/sources/plain_number.h"
#include "headrace/pipeline/sources/tables/csv_labels.h"

namespace headrace {

// A field of all records, and the names of its values if they are classes.
struct CsvColumn {
  Array array;
  std::vector<std::string> classes = {};
};

// Returns the field `choice` from the cells of its columns, one vector a column, all equally long:
//  - kNumber: i64 if all are written as integers, else f32, rounded to nearest; of n columns a vector of n
//  - kList: numbers with blanks, commas or semicolons between them, equally many in every row
//  - kClass: i64, as number_labels() numbers the classes
//  - kText: its bytes, u8, with zeros after them up to the longest
// Throws DataError naming `source` and the line of a cell that is none of this.
CsvColumn make_csv_column(const ColumnChoice& choice, std::span<const std::vector<CsvCell>* const> columns,
                          const std::string& source);

// Returns a column of numbers as f32 scalars.
Array float_column(const std::string& name, const std::vector<CsvCell>& column, const std::string& source);

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
