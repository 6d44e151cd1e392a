#include "headrace/pipeline/sources/tables/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "headrace/devices/base/counted.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/tables/csv_labels.h"

namespace headrace {
namespace {

[[noreturn]] void refuse_cell(const std::string& name, const CsvCell& cell, const std::string& source,
                              const std::string& what, const std::string& hint) {
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("line {}: '{}' in column '{}' {}", cell.line, cell.text, name, what),
                  {.source = source}, hint);
}

template <typename Value>
std::vector<std::byte> bytes_of_values(const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Collects numbers as integers and as floats until it is known which they are.
class CellNumbers {
 public:
  CellNumbers(std::string column, const std::string& source, bool only_floats)
      : column_(std::move(column)), source_(source), plain_(!only_floats) {}

  void add(std::string_view text, const CsvCell& cell) {
    const std::optional<PlainNumber> number = parse_plain_number(text);
    if (!number) {
      refuse_cell(column_, cell, source_, text.empty() ? "is empty" : "is no number",
                  fmt::format("a column that is taken along holds a number in every row; for text say '{0}:text', "
                              "for the names of classes '{0}:class'",
                              column_));
    }
    plain_ = plain_ && number->plain;
    integers_.push_back(number->integer.value_or(0));
    const bool fits = std::abs(number->value) <= std::numeric_limits<float>::max();
    if (!fits && !plain_)
      refuse_cell(column_, cell, source_, "is beyond what a float32 holds", "scale the column");
    floats_.push_back(fits ? static_cast<float>(number->value) : 0);
  }
  std::size_t size() const noexcept { return floats_.size(); }

  Array field(const std::string& name, const Shape& shape) const {
    if (plain_) {
      return {.field = {.name = name, .dtype = DType::kI64, .shape = shape}, .bytes = bytes_of_values(integers_)};
    }
    return {.field = {.name = name, .dtype = DType::kF32, .shape = shape}, .bytes = bytes_of_values(floats_)};
  }

 private:
  std::string column_;
  const std::string& source_;
  bool plain_;
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
};

Array numbers_of(const ColumnChoice& choice, std::span<const std::vector<CsvCell>* const> columns,
                 const std::string& source, bool only_floats) {
  CellNumbers numbers(choice.columns.front(), source, only_floats);
  for (std::size_t row = 0; row < columns.front()->size(); ++row) {
    for (const std::vector<CsvCell>* column : columns) numbers.add((*column)[row].text, (*column)[row]);
  }
  const auto width = static_cast<std::int64_t>(columns.size());
  return numbers.field(choice.field, width == 1 ? Shape{} : Shape{width});
}

Array lists_of(const ColumnChoice& choice, const std::vector<CsvCell>& column, const std::string& source) {
  constexpr std::string_view kBetween = " \t,;";
  CellNumbers numbers(choice.columns.front(), source, false);
  std::size_t length = 0;
  for (std::size_t row = 0; row < column.size(); ++row) {
    const std::size_t before = numbers.size();
    std::string_view text = column[row].text;
    for (;;) {
      text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
      if (text.empty()) break;
      numbers.add(text.substr(0, text.find_first_of(kBetween)), column[row]);
      text.remove_prefix(std::min(text.find_first_of(kBetween), text.size()));
    }
    const std::size_t count = numbers.size() - before;
    if (row == 0) length = count;
    if (count == length && count > 0) continue;
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("line {}: column '{}' has {}, the first row {}", column[row].line,
                                choice.columns.front(), count_of(count, "number"), length),
                    {.source = source}, "a list has equally many numbers in every row, at least one");
  }
  return numbers.field(choice.field, {static_cast<std::int64_t>(length)});
}

Array texts_of(const ColumnChoice& choice, const std::vector<CsvCell>& column, const std::string& source) {
  std::size_t longest = 1;
  for (const CsvCell& cell : column) {
    longest = std::max(longest, cell.text.size());
    if (cell.text.find('\0') == std::string::npos) continue;
    refuse_cell(choice.columns.front(), cell, source, "holds a NUL byte, which is no text",
                "remove it from the table");
  }
  Array array{.field = {.name = choice.field, .dtype = DType::kU8, .shape = {static_cast<std::int64_t>(longest)}},
              .bytes = std::vector<std::byte>(longest * column.size())};
  for (std::size_t row = 0; row < column.size(); ++row) {
    std::ranges::copy(std::as_bytes(std::span(column[row].text)),
                      array.bytes.begin() + static_cast<std::ptrdiff_t>(row * longest));
  }
  return array;
}

CsvColumn classes_of(const ColumnChoice& choice, const std::vector<CsvCell>& column, const std::string& source) {
  CsvLabels labels = number_labels(choice.columns.front(), column, source, LabelType::kClass);
  return {.array = {.field = {.name = choice.field, .dtype = DType::kI64, .shape = {}},
                    .bytes = bytes_of_values(labels.values)},
          .classes = std::move(labels.classes)};
}

}  // namespace

CsvColumn make_csv_column(const ColumnChoice& choice, std::span<const std::vector<CsvCell>* const> columns,
                          const std::string& source) {
  switch (choice.type) {
    case ColumnType::kText: return {.array = texts_of(choice, *columns.front(), source)};
    case ColumnType::kList: return {.array = lists_of(choice, *columns.front(), source)};
    case ColumnType::kClass: return classes_of(choice, *columns.front(), source);
    case ColumnType::kMask:
      throw ConfigError(fmt::format("{}: the column '{}' cannot be a mask", source, choice.columns.front()),
                        "masks are members of archives, files beside images, or features of TFRecords");
    case ColumnType::kNumber: break;
  }
  return {.array = numbers_of(choice, columns, source, false)};
}

Array float_column(const std::string& name, const std::vector<CsvCell>& column, const std::string& source) {
  const std::vector<CsvCell>* columns[] = {&column};
  return numbers_of({.field = name, .columns = {name}}, columns, source, true);
}

}  // namespace headrace
