// Numbers in the cells of a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace {

// Beyond it distinct neighbouring integers are the same double.
inline constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53

struct CsvCell {
  std::string text;  // as written
  std::uint64_t line = 0;
  bool quoted = false;
};

struct PlainNumber {
  double value = 0;
  std::optional<std::int64_t> integer = {};  // in any notation: 7, 7.0, 7e0
  bool plain = false;                        // written as an integer: digits and a sign
};

// Parses a number; std::nullopt for names, including nan and inf. Surrounding blanks and a plus sign are ignored.
std::optional<PlainNumber> parse_plain_number(std::string_view text);

// Determines the kind of a column's cells, one after another.
class CsvKind {
 public:
  void look_at(std::string_view text);
  const char* name() const noexcept;  // "integers", "numbers", "text"; empty cells are text

 private:
  bool plain_ = true, numbers_ = true;
};

}  // namespace headrace
