#include "headrace/pipeline/sources/tables/csv_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

std::string_view bare(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

[[noreturn]] void refuse_cell(const std::string& name, const CsvCell& cell, const std::string& source,
                              const char* what) {
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("line {}: '{}' in column '{}' is {}", cell.line, cell.text, name, what),
                  {.source = source}, "a column that is taken along holds a number in every row");
}

template <typename Value>
std::vector<std::byte> bytes_of_values(const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::optional<CsvNumber> parse_csv_number(std::string_view text) {
  text = bare(text);
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, integer); at == end && error == std::errc()) {
    return CsvNumber{.value = static_cast<double>(integer), .integer = integer, .plain = true};
  }
  double value = 0;
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || at != end || text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = HUGE_VAL;
  CsvNumber number{.value = value};
  if (std::trunc(value) == value && std::abs(value) < kMaxExactCsvInteger) {
    number.integer = static_cast<std::int64_t>(value);
  }
  return number;
}

void CsvKind::look_at(std::string_view text) {
  if (!numbers_) return;
  const std::optional<CsvNumber> number = parse_csv_number(text);
  numbers_ = number.has_value();
  plain_ = plain_ && number && number->plain;
}

const char* CsvKind::name() const noexcept { return !numbers_ ? "text" : plain_ ? "integers" : "numbers"; }

Array number_field(const std::string& name, const std::vector<CsvCell>& column, const std::string& source,
                   bool only_floats) {
  std::vector<std::int64_t> integers;
  std::vector<float> floats;
  bool all_plain = !only_floats;
  for (const CsvCell& cell : column) {
    const std::optional<CsvNumber> number = parse_csv_number(cell.text);
    if (!number) refuse_cell(name, cell, source, cell.text.empty() ? "empty" : "no number");
    all_plain = all_plain && number->plain;
    integers.push_back(number->integer.value_or(0));
    const bool fits = std::abs(number->value) <= std::numeric_limits<float>::max();
    if (!fits && !all_plain) refuse_cell(name, cell, source, "beyond what a float32 holds");
    floats.push_back(fits ? static_cast<float>(number->value) : 0);
  }
  if (all_plain)
    return {.field = {.name = name, .dtype = DType::kI64, .shape = {}}, .bytes = bytes_of_values(integers)};
  return {.field = {.name = name, .dtype = DType::kF32, .shape = {}}, .bytes = bytes_of_values(floats)};
}

}  // namespace headrace
