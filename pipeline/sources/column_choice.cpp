#include "headrace/pipeline/sources/column_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

constexpr std::array kColumnTypes{ColumnType::kNumber, ColumnType::kText, ColumnType::kClass, ColumnType::kList,
                                  ColumnType::kMask};

ColumnType parse_type(const std::string& text, const std::string& word, const std::string& source) {
  std::vector<std::string> words;
  for (const ColumnType type : kColumnTypes) {
    if (word == to_string(type)) return type;
    words.emplace_back(to_string(type));
  }
  throw ConfigError(fmt::format("{}: '{}' is no column and '{}' is no type of one{}", source, text, word,
                                did_you_mean(word, words)),
                    fmt::format("write COLUMN:TYPE with one of these types: {}", fmt::join(words, ", ")));
}

std::vector<std::string> split_at_plus(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t plus = text.find('+', at);
    parts.emplace_back(text.substr(at, plus - at));
    at = plus == std::string_view::npos ? plus : plus + 1;
  }
  return parts;
}

}  // namespace

const char* to_string(ColumnType type) noexcept {
  switch (type) {
    case ColumnType::kNumber: return "number";
    case ColumnType::kText: return "text";
    case ColumnType::kClass: return "class";
    case ColumnType::kList: return "list";
    case ColumnType::kMask: return "mask";
  }
  return "unknown";
}

ColumnChoice parse_column_choice(const std::string& text, const std::function<bool(const std::string&)>& is_column,
                                 const std::string& source) {
  if (is_column(text)) return {.field = text, .columns = {text}};
  ColumnChoice choice;
  std::string rest = text;
  if (const std::size_t equals = rest.find('='); equals != std::string::npos) {
    choice.field = rest.substr(0, equals);
    rest.erase(0, equals + 1);
  }
  const bool typed = !is_column(rest) && rest.find(':') != std::string::npos;
  if (typed) {
    const std::size_t colon = rest.rfind(':');
    choice.type = parse_type(text, rest.substr(colon + 1), source);
    rest.resize(colon);
  }
  choice.columns = is_column(rest) ? std::vector{rest} : split_at_plus(rest);
  if (choice.field.empty() && text.find('=') == std::string::npos) choice.field = rest;
  if (choice.field.empty() || std::ranges::count(choice.columns, "") > 0) {
    throw ConfigError(fmt::format("{}: '{}' has an empty name", source, text),
                      "write [FIELD=]COLUMN[+COLUMN...][:TYPE]");
  }
  if (choice.columns.size() > 1 && choice.type != ColumnType::kNumber) {
    throw ConfigError(fmt::format("{}: '{}' makes one field of several columns, whose type is {}", source, text,
                                  to_string(choice.type)),
                      "several columns of one field hold numbers; take the others along one by one");
  }
  return choice;
}

}  // namespace headrace
