// Comma-separated values: quoted fields, doubled quotes, line ends of any system, a byte order mark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct CsvRow {
  std::uint64_t line = 0;    // where it starts, from 1
  std::uint64_t offset = 0;  // where it starts, in bytes
  std::vector<std::string> cells;
  std::vector<bool> quoted;  // by cell
};

// Reads the rows of a text one after another. Throws DataError naming `source` and the offset if a quote is never
// closed or is in the middle of a cell.
class CsvReader {
 public:
  // REQUIRES: both arguments outlive the reader.
  CsvReader(std::string_view text, const std::string& source);

  // Reads the next row that is not an empty line; false at the end.
  bool next(CsvRow& row);

 private:
  bool ends_line(std::size_t at) const noexcept;  // "\n", "\r\n" and "\r" do, each once
  std::string quoted_cell();
  std::string plain_cell();
  [[noreturn]] void fail(const std::string& what, std::size_t at) const;

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
};

}  // namespace headrace
