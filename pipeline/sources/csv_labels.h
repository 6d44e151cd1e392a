// The label column of a CSV manifest: numbers in numeric order, or names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

struct CsvLabel {
  std::string text;  // as written
  std::uint64_t line = 0;
  bool quoted = false;
};

struct CsvLabels {
  std::vector<std::int64_t> values;  // of each row
  std::vector<std::string> classes;  // by value; none where the labels are integers
};

// A column of integers however they are written (7, 07, 7.0, 7e0, "7") gives these. One of other numbers gives
// classes in numeric order, called as they are first written; one of names gives classes in bytewise order. Where
// both kinds stand in one column they are names if every one of them is in quotes; else DataError naming `source`
// and the line of the odd one.
CsvLabels number_labels(const std::vector<CsvLabel>& column, const std::string& source);

}  // namespace headrace
