// Numbers in the cells of a table, and columns of them as fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources.h"

namespace headrace {

// Beyond it neighbouring integers are one and the same double.
inline constexpr double kMaxExactCsvInteger = 9007199254740992.0;  // 2^53

struct CsvCell {
  std::string text;  // as written
  std::uint64_t line = 0;
  bool quoted = false;
};

struct CsvNumber {
  double value = 0;
  std::optional<std::int64_t> integer = {};  // however it is written: 7, 7.0, 7e0
  bool plain = false;                        // written as an integer: digits and a sign
};

// Nothing for names, among them nan and inf. Blanks around a number are no part of it, nor is a plus sign.
std::optional<CsvNumber> parse_csv_number(std::string_view text);

// What the cells of a column are, one after another.
class CsvKind {
 public:
  void look_at(std::string_view text);
  const char* name() const noexcept;  // "integers", "numbers", "text"; empty cells are text

 private:
  bool plain_ = true, numbers_ = true;
};

// A scalar field of a column's numbers: i64 where all are written as integers, else f32, rounded to nearest.
// DataError naming `source` and the line of a cell that is no number, or none of a f32.
Array number_field(const std::string& name, const std::vector<CsvCell>& column, const std::string& source,
                   bool only_floats = false);

}  // namespace headrace
