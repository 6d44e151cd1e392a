#include "headrace/pipeline/sources/tables/csv_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/cell_classes.h"
#include "headrace/pipeline/sources/cell_numbers.h"

namespace headrace {
namespace {

[[noreturn]] void fail_with_both_kinds(const CsvCell& odd, bool is_name, const CsvCell& other,
                                       const std::string& source) {
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("line {}: the label '{}' is a {}, and '{}' in line {} is a {}", odd.line, odd.text,
                              is_name ? "name" : "number", other.text, other.line, is_name ? "number" : "name"),
                  {.source = source},
                  "use numbers or names throughout, or put every label in quotes where all are names");
}

[[noreturn]] void refuse_too_large(const CsvCell& label, const std::string& source) {
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("line {}: the label '{}' is too large a number to be told from its neighbours",
                              label.line, label.text),
                  {.source = source}, "use integers below 2^63, or names");
}

[[noreturn]] void refuse_fractions(const std::string& name, const CsvCell& first, const std::string& source) {
  throw ConfigError(
      fmt::format("{}: the label column '{}' holds numbers that are not whole, the first in line {}: '{}'", source,
                  name, first.line, first.text),
      joined({advice("for values to predict, as float32, say {}", named("ColumnOptions::label_type", "number")),
              advice("where each value is a class, say {}", named("ColumnOptions::label_type", "class"))},
             "; "));
}

CsvLabels number_names(const std::vector<CsvCell>& column) {
  CellClasses classes;
  for (const CsvCell& label : column) classes.add(label.text);
  classes.settle(/*numeric=*/false);
  CsvLabels labels{.values = {}, .classes = classes.names()};
  for (const CsvCell& label : column) labels.values.push_back(*classes.number_of(label.text));
  return labels;
}

CsvLabels number_values(const std::vector<CsvCell>& column, const std::vector<std::optional<PlainNumber>>& numbers,
                        const std::string& source) {
  std::map<double, std::pair<std::string, std::int64_t>> classes;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (!(std::abs(numbers[i]->value) < kMaxExactInteger)) refuse_too_large(column[i], source);
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

CsvLabels number_labels(const std::string& column_name, const std::vector<CsvCell>& column,
                        const std::string& source, LabelType type) {
  std::vector<std::optional<PlainNumber>> numbers;
  for (const CsvCell& label : column) numbers.push_back(parse_plain_number(label.text));
  const auto count = std::ranges::count_if(numbers, [](const auto& number) { return number.has_value(); });
  const auto names = std::ssize(numbers) - count;
  if (count > 0 && names > 0 && !std::ranges::all_of(column, &CsvCell::quoted)) {
    const bool odd_is_name = names <= count;
    const auto first = [&](bool name) -> const CsvCell& {
      const auto found = std::ranges::find(numbers, !name, [](const auto& number) { return number.has_value(); });
      return column[static_cast<std::size_t>(found - numbers.begin())];
    };
    fail_with_both_kinds(first(odd_is_name), odd_is_name, first(!odd_is_name), source);
  }
  if (names > 0) return number_names(column);
  if (type == LabelType::kClass) return number_values(column, numbers, source);
  const auto fraction = std::ranges::find_if(numbers, [](const auto& number) { return !number->integer; });
  if (fraction != numbers.end()) {
    const CsvCell& label = column[static_cast<std::size_t>(fraction - numbers.begin())];
    const double value = (*fraction)->value;
    std::trunc(value) == value ? refuse_too_large(label, source) : refuse_fractions(column_name, label, source);
  }
  CsvLabels labels;
  for (const auto& number : numbers) labels.values.push_back(*number->integer);
  return labels;
}

}  // namespace headrace
