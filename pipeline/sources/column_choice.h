// The further columns of a table, features of TFRecords, or members of samples, that become fields: what
// ColumnOptions::columns says.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

enum class ColumnType { kNumber, kText, kClass, kList, kMask };
const char* to_string(ColumnType type) noexcept;  // "number", "text", "class", "list", "mask"

struct ColumnChoice {
  std::string field;
  std::vector<std::string> columns;  // several: their numbers become one field
  ColumnType type = ColumnType::kNumber;
};

// Parses "[FIELD=]COLUMN[+COLUMN...][:TYPE]". If all of `text` is a column, as `is_column` says, it is one. Throws
// ConfigError beginning with `source` if the type is unknown, does not apply to several columns, or if there is an
// empty name.
ColumnChoice parse_column_choice(const std::string& text, const std::function<bool(const std::string&)>& is_column,
                                 const std::string& source);

}  // namespace headrace
