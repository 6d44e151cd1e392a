// The columns of a table, features of TFRecords or members of samples that become fields. What
// ColumnOptions::columns says, "[FIELD=]COLUMN[+COLUMN...][:TYPE]", is read and resolved here for all formats:
// each says which columns it has and what they can be, and yields their cells.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/source.h"

namespace headrace {

// kNumber, also where no type is said: as what it is, numbers or an image.
enum class ColumnType { kNumber, kText, kClass, kList, kMask };
const char* to_string(ColumnType type) noexcept;  // "number", "text", "class", "list", "mask"

// A column, as its format knows it.
struct NamedColumn {
  std::string name;
  std::string holds = {};                  // "text", "3 floats"
  std::vector<ColumnType> types = {};      // that it can be taken as; none: it cannot be a field
  bool is_number = false;                  // one number a record: several such columns can become one field
  std::string hint = {};                   // what to do where it is not of the wanted type
  std::string alias = {};                  // another name
  ColumnType usual = ColumnType::kNumber;  // where no type is said
};

struct ChosenField {
  std::string field;
  std::vector<std::size_t> columns;  // positions; several: their numbers become one field
  ColumnType type = ColumnType::kNumber;
};

// Chooses the fields of one source. All errors are ConfigErrors that begin with the source's name.
class ColumnChooser {
 public:
  // The word for a column in messages, and the place where columns are looked for: "member", " in its first
  // samples".
  struct Words {
    const char* column = "column";
    const char* where = "";
  };
  // Returns the column of a name; std::nullopt if it is no name of one.
  using MakeColumn = std::function<std::optional<NamedColumn>(const std::string& name)>;

  ColumnChooser(std::string source, Words words, std::vector<NamedColumn> columns)
      : source_(std::move(source)), words_(words), columns_(std::move(columns)) {}
  // For a format whose columns are not listed: they are made as they are named.
  ColumnChooser(std::string source, Words words, MakeColumn make)
      : source_(std::move(source)), words_(words), make_(std::move(make)) {}

  const std::vector<NamedColumn>& columns() const noexcept { return columns_; }
  // Returns the first column of this name.
  std::optional<std::size_t> find(const std::string& name) const noexcept;
  // Returns the only column of this name. Throws if there is none or more than one; `option` named it.
  std::size_t require(const std::string& name, std::string_view option) const;

  // Takes columns as a field that no text names. Throws if the record has too many fields.
  void add(const std::string& field, std::vector<std::size_t> columns);
  // Refuses further fields of this name, as those of an image and a label that other options choose.
  void reserve(const std::string& field) { reserved_.push_back(field); }
  // Takes what one of ColumnOptions::columns names. Throws if it is no such text, if a column is missing or cannot
  // be of the type, if a field is called so already, or if there are too many.
  ChosenField take(const std::string& text);

  // Returns the field that a column was taken as first; empty if none.
  std::string field_of(std::size_t column) const;
  // Returns all columns and their fields.
  std::vector<SourceColumn> listed() const;

  [[noreturn]] void refuse(std::size_t column, const std::string& why, const std::string& hint) const;
  // Refuses a column that is not of the type.
  [[noreturn]] void refuse_type(std::size_t column, ColumnType type) const;

 private:
  struct Taken {
    std::string field;
    std::vector<std::size_t> columns;
  };

  std::size_t place_of(const std::string& name);
  bool has_field(const std::string& field) const;

  std::string source_;
  Words words_;
  std::vector<NamedColumn> columns_;
  MakeColumn make_;
  std::vector<Taken> taken_;
  std::vector<std::string> reserved_;
};

// Throws ConfigError for a column that is not there; `option` named it.
[[noreturn]] void refuse_missing(const std::string& source, const ColumnChooser::Words& words,
                                 const std::string& name, const std::vector<std::string>& there,
                                 std::string_view option);

// Returns the field of encoded images, or of masks: images of one channel, whose numbers are kept as they are
// stored.
Field image_field(std::string name, bool is_mask = false);
// Returns the field of a text's bytes, of varying length.
Field text_field(std::string name);

}  // namespace headrace
