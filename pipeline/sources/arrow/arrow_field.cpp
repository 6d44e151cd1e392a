#include "headrace/pipeline/sources/arrow/arrow_field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/arrow/arrow_columns.h"
#include "headrace/pipeline/sources/cell_classes.h"
#include "headrace/pipeline/sources/columns.h"

namespace headrace {
namespace {

std::string name_from(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

ArrowField::ArrowField(const ArrowType& root, const ArrowColumn& column, ArrowTableCells cells,
                       const ArrowOptions& options, const std::vector<std::string>& classes)
    : name_(fmt::format("{}", fmt::join(column.names, "+"))), cells_(std::move(cells)) {
  field_ = {.name = column.field, .dtype = DType::kU8, .shape = {}};
  switch (column.use) {
    case ArrowUse::kImage:
    case ArrowUse::kMask:
      field_ = image_field(column.field, column.use == ArrowUse::kMask);
      look_at_bytes();
      break;
    case ArrowUse::kText: read_text(options); break;
    case ArrowUse::kClass: read_classes(options, classes); break;
    case ArrowUse::kNumbers:
      classes_ = classes;
      field_.dtype = number_type(root, column, options.columns.label_type);
      column.names.size() > 1 ? read_vector(options) : read_numbers(options);
  }
}

template <typename Body>
void ArrowField::for_each_good(const Body& body) {
  const bool may_be_null = std::ranges::any_of(cells_.columns, [](const ArrowColumnCells& column) {
    return std::ranges::any_of(column, &ArrowCells::may_have_nulls);
  });
  const auto is_null = [&](const ArrowRow& at) {
    return std::ranges::any_of(cells_.columns,
                               [&](const ArrowColumnCells& column) { return column[at.batch].is_null(at.row); });
  };
  cells_.for_each([&](const ArrowRow& at) {
    if (is_bad(at.record)) return;
    try {
      if (may_be_null && is_null(at)) return mark_bad(at.record);
      body(at);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataCorrupt) throw;
      mark_bad(at.record);
    }
  });
}

template <typename Append>
void ArrowField::append_each(const Append& append, const ArrowOptions& options) {
  const bool varies = field_.shape.is_dynamic();
  if (varies) places_.resize(cells_.records);
  for_each_good([&](const ArrowRow& at) {
    if (!varies) owned_.resize(at.record * record_bytes_);
    const std::size_t before = owned_.size();
    append(at);
    if (varies) places_[at.record] = {before, owned_.size() - before};
    if (owned_.size() <= options.memory_limit) return;
    throw ConfigError(fmt::format("{}: the column '{}' takes more than the {} bytes allowed for converted columns",
                                  options.name, name_, options.memory_limit),
                      joined({advice("raise {}", named("ArrowOptions::memory_limit")), "convert it beforehand"}));
  });
  if (!varies) owned_.resize(cells_.records * record_bytes_);
}

void ArrowField::mark_bad(std::uint64_t record) {
  if (bad_.empty()) bad_.resize(cells_.records);
  bad_[record] = true;
}

void ArrowField::look_at_bytes() {
  form_ = Form::kBytes;
  if (cells_.files.empty()) {
    return for_each_good([&](const ArrowRow& at) { cells_.columns.front()[at.batch].bytes(at.row); });
  }
  bool has_files = false;
  cells_.for_each([&](const ArrowRow& at) {
    const bool is_named = is_file(at);
    has_files = has_files || is_named;
    try {
      if (!is_named && cells_.columns.front()[at.batch].is_null(at.row)) return mark_bad(at.record);
      is_named ? path(at) : cells_.columns.front()[at.batch].bytes(at.row);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataCorrupt) throw;
      mark_bad(at.record);
    }
  });
  if (!has_files) cells_.files.clear();
}

bool ArrowField::is_file(const ArrowRow& at) const {
  return !cells_.files.empty() && cells_.columns.front()[at.batch].is_null(at.row) &&
         !cells_.files[at.batch].is_null(at.row);
}

void ArrowField::read_numbers(const ArrowOptions& options) {
  const ArrowColumnCells& cells = cells_.columns.front();
  const ArrowType& type = cells.front().type();
  type.is_list() ? read_shape(type) : for_each_good([](const ArrowRow&) {});
  if (!field_.shape.is_dynamic()) {
    record_bytes_ = static_cast<std::size_t>(field_.shape.elements()) * size_of(field_.dtype);
  }
  if (is_sliceable(type, field_.dtype)) {
    form_ = Form::kSlices;
  } else {
    append_each([&](const ArrowRow& at) { cells[at.batch].append(at.row, field_.dtype, owned_); }, options);
  }
}

// Of the first record's lists; their outermost extent varies if it is another one in any record.
void ArrowField::read_shape(const ArrowType& type) {
  const ArrowColumnCells& cells = cells_.columns.front();
  std::vector<std::int64_t> shape, extents;
  for_each_good([&](const ArrowRow& at) {
    cells[at.batch].extents(at.row, extents);
    if (shape.empty()) shape = extents;
    if (type.kind == ArrowKind::kList && extents[0] != shape[0]) shape[0] = extents[0] = Shape::kDynamic;
    const bool is_even = std::ranges::count(extents.begin() + 1, extents.end(), ArrowCells::kUneven) == 0;
    if (!is_even || !std::ranges::equal(extents.begin() + 1, extents.end(), shape.begin() + 1, shape.end())) {
      mark_bad(at.record);
    }
  });
  if (shape.empty()) shape = {0};
  if (field_.name == "image" && shape.size() == 2) shape.push_back(1);
  field_.shape = Shape(shape);
}

void ArrowField::read_vector(const ArrowOptions& options) {
  field_.shape = Shape{std::ssize(cells_.columns)};
  record_bytes_ = cells_.columns.size() * size_of(field_.dtype);
  append_each(
      [&](const ArrowRow& at) {
        for (const ArrowColumnCells& column : cells_.columns)
          column[at.batch].append(at.row, field_.dtype, owned_);
      },
      options);
}

void ArrowField::read_text(const ArrowOptions& options) {
  const ArrowColumnCells& cells = cells_.columns.front();
  record_bytes_ = 1;
  for_each_good([&](const ArrowRow& at) {
    const std::span<const std::byte> text = cells[at.batch].bytes(at.row);
    if (std::ranges::count(text, std::byte{0}) > 0) return mark_bad(at.record);
    record_bytes_ = std::max(record_bytes_, text.size());
  });
  field_.shape = Shape{static_cast<std::int64_t>(record_bytes_)};
  append_each(
      [&](const ArrowRow& at) {
        const std::span<const std::byte> text = cells[at.batch].bytes(at.row);
        owned_.insert(owned_.end(), text.begin(), text.end());
      },
      options);
}

void ArrowField::read_classes(const ArrowOptions& options, const std::vector<std::string>& names) {
  field_.dtype = DType::kI64;
  record_bytes_ = sizeof(std::int64_t);
  const ArrowColumnCells& cells = cells_.columns.front();
  const ArrowType& type = cells.front().type();
  if (has_floats(type) && !type.has_text()) {
    throw ConfigError(fmt::format("{}: the column '{}' of classes holds {}", options.name, name_, describe(type)),
                      "classes are integers or text: cast it");
  }
  std::vector<std::byte> value(sizeof(std::int64_t));
  const auto name_at = [&](const ArrowRow& at) {
    if (type.has_text()) return name_from(cells[at.batch].bytes(at.row));
    value.clear();
    cells[at.batch].append(at.row, DType::kI64, value);
    std::int64_t number = 0;
    std::memcpy(&number, value.data(), sizeof number);
    return std::to_string(number);
  };
  // The given names number the values of text; those of integers are numbered by themselves.
  CellClasses classes;
  const bool are_given = type.has_text() && !names.empty();
  if (!are_given) for_each_good([&](const ArrowRow& at) { classes.add(name_at(at)); });
  are_given ? classes.settle(names) : classes.settle(/*numeric=*/!type.has_text());
  classes_ = names.empty() ? classes.names() : names;
  append_each(
      [&](const ArrowRow& at) {
        const std::optional<std::int64_t> number = classes.number_of(name_at(at));
        if (!number) {
          throw ConfigError(fmt::format("{}: the column '{}' holds '{}', which is none of the {} classes given",
                                        options.name, name_, name_at(at), names.size()),
                            "name all classes, or none: then they are numbered in bytewise order");
        }
        const auto bytes = std::as_bytes(std::span(&*number, 1));
        owned_.insert(owned_.end(), bytes.begin(), bytes.end());
      },
      options);
}

std::span<const std::byte> ArrowField::value(const ArrowRow& at) const {
  if (form_ == Form::kSlices) return cells_.columns.front()[at.batch].slice(at.row);
  if (form_ == Form::kBytes) return cells_.columns.front()[at.batch].bytes(at.row);
  const Place place = places_.empty() ? Place{at.record * record_bytes_, record_bytes_} : places_[at.record];
  return std::span(owned_).subspan(place.offset, place.size);
}

std::optional<FieldColumn> ArrowField::column() const {
  if (form_ == Form::kBytes || field_.shape.is_dynamic() || !bad_.empty()) return std::nullopt;
  if (form_ == Form::kOwned) return FieldColumn{.data = owned_.data(), .record_bytes = record_bytes_};
  const auto has_records = [](std::int64_t rows) { return rows > 0; };
  const auto first = std::ranges::find_if(cells_.rows, has_records);
  if (first == cells_.rows.end() || std::ranges::count_if(cells_.rows, has_records) > 1) return std::nullopt;
  const auto batch = static_cast<std::size_t>(first - cells_.rows.begin());
  return FieldColumn{.data = cells_.columns.front()[batch].slice(0).data(), .record_bytes = record_bytes_};
}

std::string ArrowField::why_bad(const ArrowRow& at) const {
  if (!is_bad(at.record)) return {};
  const std::string where = fmt::format("column '{}'", name_);
  std::vector<std::int64_t> extents;
  try {
    for (const ArrowColumnCells& column : cells_.columns) {
      if (column[at.batch].is_null(at.row)) return where + " is null, or has a null in it";
    }
    const ArrowCells& cells = cells_.columns.front()[at.batch];
    if (!cells.type().is_list()) {
      if (std::ranges::count(cells.bytes(at.row), std::byte{0}) > 0)
        return where + " holds a NUL byte, which is no text";
      return where + " cannot be read";
    }
    cells.extents(at.row, extents);
  } catch (const Error& error) {
    return where + ": " + error.message();
  }
  return fmt::format("{} has lists of {} where others have {}", where, fmt::join(extents, " x "),
                     field_.shape.to_string());
}

}  // namespace headrace
