#include "headrace/pipeline/sources/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/record.h"

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

// A text of ColumnOptions::columns in its parts.
struct ColumnText {
  std::string field;
  std::vector<std::string> columns;
  std::optional<ColumnType> type = {};
};

// Takes all of `text` as a column if it is one, as `is_column` says.
template <typename IsColumn>
ColumnText parse_column_text(const std::string& text, const IsColumn& is_column, const std::string& source) {
  if (is_column(text)) return {.field = text, .columns = {text}};
  ColumnText parts;
  std::string rest = text;
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos) {
    parts.field = text.substr(0, equals);
    rest.erase(0, equals + 1);
  }
  if (const std::size_t colon = rest.rfind(':'); colon != std::string::npos && !is_column(rest)) {
    parts.type = parse_type(text, rest.substr(colon + 1), source);
    rest.resize(colon);
  }
  parts.columns = is_column(rest) ? std::vector{rest} : split_at_plus(rest);
  if (equals == std::string::npos) parts.field = rest;
  if (parts.field.empty() || std::ranges::count(parts.columns, "") > 0) {
    throw ConfigError(fmt::format("{}: '{}' has an empty name", source, text),
                      "write [FIELD=]COLUMN[+COLUMN...][:TYPE]");
  }
  if (parts.columns.size() > 1 && parts.type.value_or(ColumnType::kNumber) != ColumnType::kNumber) {
    throw ConfigError(fmt::format("{}: '{}' makes one field of several columns, whose type is {}", source, text,
                                  to_string(*parts.type)),
                      "several columns of one field hold numbers; take the others along one by one");
  }
  return parts;
}

std::string in_list(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxShown = 32, kMaxName = 64;
  if (names.empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i].substr(0, kMaxName);
  }
  return names.size() <= kMaxShown ? text : fmt::format("{} and {} more", text, names.size() - kMaxShown);
}

std::vector<std::string> names_of(const std::vector<NamedColumn>& columns) {
  std::vector<std::string> names;
  for (const NamedColumn& column : columns) names.push_back(column.name);
  return names;
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

std::optional<std::size_t> ColumnChooser::find(const std::string& name) const noexcept {
  const auto found = std::ranges::find_if(columns_, [&](const NamedColumn& column) {
    return column.name == name || (!column.alias.empty() && column.alias == name);
  });
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

std::size_t ColumnChooser::require(const std::string& name, std::string_view option) const {
  const std::optional<std::size_t> found = find(name);
  if (!found) refuse_missing(source_, words_, name, names_of(columns_), option);
  if (std::ranges::count(columns_, name, &NamedColumn::name) > 1) {
    throw ConfigError(fmt::format("{}: more than one {} '{}'{}", source_, words_.column, name, words_.where),
                      fmt::format("give each {} that is taken a name of its own", words_.column));
  }
  return *found;
}

std::size_t ColumnChooser::place_of(const std::string& name) {
  if (!make_ || find(name)) return require(name, "ColumnOptions::columns");
  if (std::optional<NamedColumn> made = make_(name)) columns_.push_back(std::move(*made));
  return require(name, "ColumnOptions::columns");
}

bool ColumnChooser::has_field(const std::string& field) const {
  return std::ranges::count(reserved_, field) > 0 || std::ranges::count(taken_, field, &Taken::field) > 0;
}

void ColumnChooser::add(const std::string& field, std::vector<std::size_t> columns) {
  taken_.push_back({.field = field, .columns = std::move(columns)});
  if (taken_.size() <= kMaxFields) return;
  throw ConfigError(
      fmt::format("{}: more than {} fields, image and label included, which is as many as a record has", source_,
                  kMaxFields),
      "take along those that are needed; several columns of numbers can be one field: NAME=COLUMN+COLUMN");
}

ChosenField ColumnChooser::take(const std::string& text) {
  const auto is_column = [&](const std::string& name) { return find(name) || (make_ && make_(name)); };
  const ColumnText parts = parse_column_text(text, is_column, source_);
  ChosenField chosen{.field = parts.field, .columns = {}};
  for (const std::string& name : parts.columns) {
    const std::size_t place = place_of(name);
    if (std::ranges::count(chosen.columns, place) > 0)
      refuse(place, "it is taken already", "name each column once");
    const NamedColumn& column = columns_[place];
    chosen.type = parts.type.value_or(column.usual);
    if (std::ranges::count(column.types, chosen.type) == 0) refuse_type(place, chosen.type);
    if (parts.columns.size() > 1 && !column.is_number) {
      refuse(place, "only columns of one number in each record become one field", "take each along by itself");
    }
    chosen.columns.push_back(place);
  }
  if (has_field(chosen.field)) {
    refuse(chosen.columns.front(), fmt::format("a field is called '{}' already", chosen.field),
           "each is a field of its name; FIELD=COLUMN gives it another one");
  }
  add(chosen.field, chosen.columns);
  return chosen;
}

std::string ColumnChooser::field_of(std::size_t column) const {
  for (const Taken& taken : taken_) {
    if (std::ranges::count(taken.columns, column) > 0) return taken.field;
  }
  return {};
}

std::vector<SourceColumn> ColumnChooser::listed() const {
  std::vector<SourceColumn> list;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    list.push_back({.name = columns_[i].name, .holds = columns_[i].holds, .field = field_of(i)});
  }
  return list;
}

void ColumnChooser::refuse(std::size_t column, const std::string& why, const std::string& hint) const {
  throw ConfigError(
      fmt::format("{}: the {} '{}' cannot be taken along: {}", source_, words_.column, columns_[column].name, why),
      hint);
}

void ColumnChooser::refuse_type(std::size_t column, ColumnType type) const {
  const NamedColumn& one = columns_[column];
  std::vector<std::string> ways;
  for (const ColumnType can : one.types) {
    ways.push_back(can == one.usual ? fmt::format("'{}'", one.name)
                                    : fmt::format("'{}:{}'", one.name, to_string(can)));
  }
  const std::string ways_text = ways.empty() ? "" : fmt::format("say {}", fmt::join(ways, " or "));
  throw ConfigError(fmt::format("{}: the {} '{}' is no {}: it holds {}", source_, words_.column, one.name,
                                to_string(type), one.holds),
                    joined({ways_text, one.hint}));
}

void refuse_missing(const std::string& source, const ColumnChooser::Words& words, const std::string& name,
                    const std::vector<std::string>& there, std::string_view option) {
  throw ConfigError(fmt::format("{}: no {} '{}'{}; there are {}{}", source, words.column, name, words.where,
                                in_list(there), did_you_mean(name, there)),
                    "name one of these with " + named_or(option, "the options for columns"));
}

Field image_field(std::string name, bool is_mask) {
  return {.name = std::move(name),
          .dtype = DType::kU8,
          .shape = {Shape::kDynamic, Shape::kDynamic, is_mask ? 1 : 3},
          .encoding = Encoding::kImage};
}

Field text_field(std::string name) {
  return {.name = std::move(name), .dtype = DType::kU8, .shape = {Shape::kDynamic}};
}

}  // namespace headrace
