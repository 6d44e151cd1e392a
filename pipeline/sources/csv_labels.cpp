#include "headrace/pipeline/sources/csv_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// Beyond it neighbouring integers are one and the same double.
constexpr double kMaxExact = 9007199254740992.0;  // 2^53

struct Number {
  double value = 0;
  std::optional<std::int64_t> integer = {};
};

// Blanks around a number are no part of it, nor is a plus sign.
std::string_view bare(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

// Nothing for names, among them nan and inf.
std::optional<Number> parse_number(std::string_view text) {
  text = bare(text);
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, integer); at == end && error == std::errc()) {
    return Number{.value = static_cast<double>(integer), .integer = integer};
  }
  double value = 0;
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || at != end || text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = HUGE_VAL;
  Number number{.value = value};
  if (std::trunc(value) == value && std::abs(value) < kMaxExact) number.integer = static_cast<std::int64_t>(value);
  return number;
}

[[noreturn]] void fail_with_both_kinds(const CsvLabel& odd, bool is_name, const CsvLabel& other,
                                       const std::string& source) {
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("line {}: the label '{}' is a {}, and '{}' in line {} is a {}", odd.line, odd.text,
                              is_name ? "name" : "number", other.text, other.line, is_name ? "number" : "name"),
                  {.source = source},
                  "use numbers or names throughout, or put every label in quotes where all are names");
}

CsvLabels number_names(const std::vector<CsvLabel>& column) {
  CsvLabels labels;
  for (const CsvLabel& label : column) labels.classes.push_back(label.text);
  std::ranges::sort(labels.classes);
  const auto repeated = std::ranges::unique(labels.classes);
  labels.classes.erase(repeated.begin(), repeated.end());
  for (const CsvLabel& label : column) {
    labels.values.push_back(std::ranges::lower_bound(labels.classes, label.text) - labels.classes.begin());
  }
  return labels;
}

CsvLabels number_fractions(const std::vector<CsvLabel>& column, const std::vector<std::optional<Number>>& numbers,
                           const std::string& source) {
  std::map<double, std::pair<std::string, std::int64_t>> classes;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (!(std::abs(numbers[i]->value) < kMaxExact)) {
      throw DataError(ErrorCode::kDataCorrupt,
                      fmt::format("line {}: the label '{}' is too large a number to be told from its neighbours",
                                  column[i].line, column[i].text),
                      {.source = source}, "use integers below 2^63, or names");
    }
    classes.try_emplace(numbers[i]->value, column[i].text, 0);
  }
  CsvLabels labels;
  for (auto& [value, entry] : classes) {
    entry.second = static_cast<std::int64_t>(labels.classes.size());
    labels.classes.push_back(entry.first);
  }
  for (const auto& number : numbers) labels.values.push_back(classes.at(number->value).second);
  return labels;
}

}  // namespace

CsvLabels number_labels(const std::vector<CsvLabel>& column, const std::string& source) {
  std::vector<std::optional<Number>> numbers;
  for (const CsvLabel& label : column) numbers.push_back(parse_number(label.text));
  const auto count = std::ranges::count_if(numbers, [](const auto& number) { return number.has_value(); });
  const auto names = std::ssize(numbers) - count;
  if (count > 0 && names > 0 && !std::ranges::all_of(column, &CsvLabel::quoted)) {
    const bool odd_is_name = names <= count;
    const auto first = [&](bool name) -> const CsvLabel& {
      const auto found = std::ranges::find(numbers, !name, [](const auto& number) { return number.has_value(); });
      return column[static_cast<std::size_t>(found - numbers.begin())];
    };
    fail_with_both_kinds(first(odd_is_name), odd_is_name, first(!odd_is_name), source);
  }
  if (names > 0) return number_names(column);
  if (!std::ranges::all_of(numbers, [](const auto& number) { return number->integer.has_value(); })) {
    return number_fractions(column, numbers, source);
  }
  CsvLabels labels;
  for (const auto& number : numbers) labels.values.push_back(*number->integer);
  return labels;
}

}  // namespace headrace
