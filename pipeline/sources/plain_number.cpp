#include "headrace/pipeline/sources/plain_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace headrace {
namespace {

std::string_view bare(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

}  // namespace

std::optional<PlainNumber> parse_plain_number(std::string_view text) {
  text = bare(text);
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, integer); at == end && error == std::errc()) {
    return PlainNumber{.value = static_cast<double>(integer), .integer = integer, .plain = true};
  }
  double value = 0;
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || at != end || text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = HUGE_VAL;
  PlainNumber number{.value = value};
  if (std::trunc(value) == value && std::abs(value) < kMaxExactInteger) {
    number.integer = static_cast<std::int64_t>(value);
  }
  return number;
}

void CsvKind::look_at(std::string_view text) {
  if (!numbers_) return;
  const std::optional<PlainNumber> number = parse_plain_number(text);
  numbers_ = number.has_value();
  plain_ = plain_ && number && number->plain;
}

const char* CsvKind::name() const noexcept { return !numbers_ ? "text" : plain_ ? "integers" : "numbers"; }

}  // namespace headrace
