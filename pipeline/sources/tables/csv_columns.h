// The cells of chosen columns of a table as fields of its records.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/column_choice.h"
#include "headrace/pipeline/sources/plain_number.h"

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

}  // namespace headrace
