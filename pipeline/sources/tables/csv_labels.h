// The label column of a CSV manifest as class numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/tables/csv_number.h"

namespace headrace {

struct CsvLabels {
  std::vector<std::int64_t> values;  // of each row
  std::vector<std::string> classes;  // by value; none where the labels are integers
};

// A column of integers however they are written (7, 07, 7.0, 7e0, "7") gives these, and one of names gives classes
// in bytewise order. Where both kinds stand in one column they are names if every one of them is in quotes; else
// DataError naming `source` and the line of the odd one. Other numbers are a ConfigError that says how to ask for
// what they are. With kClass, numbers of any kind give classes in numeric order, called as they are first written.
CsvLabels number_labels(const std::string& column_name, const std::vector<CsvCell>& column,
                        const std::string& source, LabelType type = LabelType::kAuto);

}  // namespace headrace
