// The label column of a CSV manifest as class numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/plain_number.h"

namespace headrace {

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

}  // namespace headrace
