#include "headrace/pipeline/sources/tables/csv_reader.h"

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {

CsvReader::CsvReader(std::string_view text, const std::string& source) : text_(text), source_(source) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
}

void CsvReader::fail(const std::string& what, std::size_t at) const {
  throw DataError(ErrorCode::kDataCorrupt, "line " + std::to_string(line_) + ": " + what,
                  {.source = source_, .offset = at},
                  "a field in quotes ends with one before the next comma, and quotes within it are doubled");
}

bool CsvReader::ends_line(std::size_t at) const noexcept {
  return text_[at] == '\n' || (text_[at] == '\r' && !text_.substr(at + 1).starts_with('\n'));
}

std::string CsvReader::quoted_cell() {
  const std::size_t begin = at_++;
  const std::uint64_t first_line = line_;
  std::string cell;
  for (;; ++at_) {
    if (at_ >= text_.size()) {
      line_ = first_line;
      fail("a quoted field is never closed", begin);
    }
    if (text_[at_] == '"') {
      if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
      ++at_;
    }
    if (ends_line(at_)) ++line_;
    cell += text_[at_];
  }
  ++at_;
  if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
    fail("a quoted field goes on after its closing quote", at_);
  }
  return cell;
}

std::string CsvReader::plain_cell() {
  const std::size_t end = std::min(text_.find_first_of(",\r\n\"", at_), text_.size());
  if (end < text_.size() && text_[end] == '"') fail("a quote in the middle of a field", end);
  std::string cell(text_.substr(at_, end - at_));
  at_ = end;
  return cell;
}

bool CsvReader::next(CsvRow& row) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += ends_line(at_++) ? 1 : 0;
  row.line = line_;
  row.offset = at_;
  row.cells.clear();
  row.quoted.clear();
  if (at_ >= text_.size()) return false;
  for (;;) {
    row.quoted.push_back(at_ < text_.size() && text_[at_] == '"');
    row.cells.push_back(row.quoted.back() ? quoted_cell() : plain_cell());
    if (at_ >= text_.size() || text_[at_] != ',') return true;
    ++at_;
  }
}

}  // namespace headrace
