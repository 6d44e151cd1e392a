// A table that another library gives batch after batch, as a stream.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/sources/arrow/arrow_cells.h"
#include "headrace/pipeline/sources/arrow/arrow_columns.h"
#include "headrace/pipeline/sources/arrow/arrow_files.h"
#include "headrace/pipeline/sources/arrow/arrow_import.h"
#include "headrace/pipeline/sources/arrow/arrow_type.h"
#include "headrace/pipeline/sources/columns.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/streamed_source.h"

namespace headrace {
namespace {

using OpenArrow = std::function<void(ArrowArrayStream*)>;

// What is known of the records before any has been read.
struct StreamTable {
  std::string name;
  ArrowType root;
  std::vector<ArrowColumn> columns;
  Fields fields;
  std::vector<std::string> classes;
};

[[noreturn]] void refuse_column(const StreamTable& table, const ArrowColumn& column, const std::string& what,
                                const std::string& hint) {
  throw ConfigError(fmt::format("{}: the column '{}' {}", table.name, column.names.front(), what), hint);
}

// The extents that the schema alone tells.
Shape schema_shape(const StreamTable& table, const ArrowColumn& column, const ArrowType& type) {
  std::vector<std::int64_t> extents;
  for (const ArrowType* level = &type; level->is_list(); level = &level->children.front()) {
    if (!level->tensor_shape.empty()) {
      extents.insert(extents.end(), level->tensor_shape.begin(), level->tensor_shape.end());
    } else if (level->kind == ArrowKind::kFixedList) {
      extents.push_back(level->width);
    } else if (level == &type) {
      extents.push_back(Shape::kDynamic);
    } else {
      refuse_column(table, column, "holds lists of lists whose lengths the schema does not say",
                    "cast the inner ones to lists of a fixed size");
    }
  }
  if (column.field == "image" && extents.size() == 2) extents.push_back(1);
  return Shape(extents);
}

Field field_of(const StreamTable& table, const ArrowColumn& column, LabelType label_type) {
  Field field{.name = column.field, .dtype = DType::kU8, .shape = {}};
  const ArrowType& type = type_at(table.root, column.paths.front());
  switch (column.use) {
    case ArrowUse::kImage:
    case ArrowUse::kMask: return image_field(column.field, column.use == ArrowUse::kMask);
    case ArrowUse::kText: return text_field(column.field);
    case ArrowUse::kClass:
      field.dtype = DType::kI64;
      if (column.is_label() && !table.classes.empty() && type.has_text()) return field;
      refuse_column(table, column, "holds classes, which a stream cannot number before it has been read",
                    "give the names of the label's classes, or read it as a table");
    case ArrowUse::kNumbers: break;
  }
  field.shape = column.paths.size() > 1 ? Shape{std::ssize(column.paths)} : schema_shape(table, column, type);
  field.dtype = number_type(table.root, column, label_type);
  return field;
}

class ArrowRecords final : public RecordStream {
 public:
  ArrowRecords(const StreamTable& table, ArrowReader reader, std::uint64_t first)
      : table_(table), reader_(std::move(reader)), number_(first) {
    for (std::uint64_t left = first; next_batch();) {
      const auto rows = static_cast<std::uint64_t>((*batch_)->length);
      if (left < rows) {
        row_ = static_cast<std::int64_t>(left);
        break;
      }
      left -= rows;
    }
  }

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
    while (batch_ && row_ == (*batch_)->length) next_batch();
    if (!batch_) return std::nullopt;
    const std::int64_t row = row_++;
    const std::uint64_t number = number_++;
    RecordWriter writer(table_.fields, buffer);
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      try {
        values_.clear();
        write(table_.columns[i], cells_[i], table_.fields[i], row);
        writer.put(i, values_);
      } catch (const Error& error) {
        throw DataError(error.code(),
                        fmt::format("column '{}': {}", table_.columns[i].names.front(), error.message()),
                        {.source = table_.name, .record = number}, error.hint());
      }
    }
    return writer.view();
  }

 private:
  bool next_batch() {
    batch_ = reader_.next();
    cells_.clear();
    row_ = 0;
    if (!batch_) return false;
    for (const ArrowColumn& column : table_.columns) {
      std::vector<ArrowCells>& cells = cells_.emplace_back();
      for (const ArrowPath& path : column.paths) cells.emplace_back(table_.root, path, **batch_);
      if (!column.files.empty()) cells.emplace_back(table_.root, column.files, **batch_);
    }
    return true;
  }

  // Appends the field of a row to values_.
  void write(const ArrowColumn& column, const std::vector<ArrowCells>& cells, const Field& field,
             std::int64_t row) {
    if (!column.files.empty()) return write_image(cells, row);
    for (const ArrowCells& one : cells) {
      if (one.is_null(row)) throw Error(ErrorCode::kDataCorrupt, "is null, or has a null in it");
      if (column.use == ArrowUse::kNumbers) {
        one.append(row, field.dtype, values_);
        continue;
      }
      const std::span<const std::byte> bytes = one.bytes(row);
      if (column.use != ArrowUse::kClass) {
        values_.insert(values_.end(), bytes.begin(), bytes.end());
        continue;
      }
      const std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const auto found = std::ranges::find(table_.classes, name);
      if (found == table_.classes.end())
        throw Error(ErrorCode::kDataCorrupt, fmt::format("'{}' is no class", name));
      const std::int64_t number = found - table_.classes.begin();
      const auto number_bytes = std::as_bytes(std::span(&number, 1));
      values_.insert(values_.end(), number_bytes.begin(), number_bytes.end());
    }
  }

  // Appends an image's bytes, or those of its file. The cells are of bytes and of paths.
  void write_image(const std::vector<ArrowCells>& cells, std::int64_t row) {
    if (!cells.front().is_null(row)) {
      const std::span<const std::byte> bytes = cells.front().bytes(row);
      values_.insert(values_.end(), bytes.begin(), bytes.end());
    } else if (!cells.back().is_null(row)) {
      append_named_file(path_in_table(cells.back().bytes(row)), values_);
    } else {
      throw Error(ErrorCode::kDataCorrupt, "is null, or has a null in it");
    }
  }

  const StreamTable& table_;  // of the source, which outlives its streams
  ArrowReader reader_;
  std::optional<ArrowBatch> batch_;
  std::vector<std::vector<ArrowCells>> cells_;  // by field, by column
  std::vector<std::byte> values_;
  std::int64_t row_ = 0;
  std::uint64_t number_;
};

class ArrowStreamSource final : public StreamedSource {
 public:
  ArrowStreamSource(OpenArrow open, const ArrowOptions& options) : open_(std::move(open)) {
    table_.name = info_.name = options.name;
    first_ = opened();
    const ArrowOwned<ArrowSchema> schema = first_->schema();
    table_.root = parse_arrow_schema(*schema, options.name);
    ArrowColumns columns = choose_arrow_columns(table_.root, options, [&](const ArrowPath& path) {
      return ArrowBytes{.images = type_at(table_.root, path).name == "image"};
    });
    table_.columns = std::move(columns.taken);
    info_.columns = std::move(columns.all);
    info_.classes = options.classes;
    Fingerprint fingerprint("arrow stream 1");
    for (const ArrowColumn& column : table_.columns) {
      if (column.is_label() && info_.classes.empty())
        info_.classes = find_class_names(*schema, column.names.front());
      table_.classes = info_.classes;
      table_.fields.push_back(field_of(table_, column, options.columns.label_type));
      fingerprint.add(table_.fields.back());
    }
    for (const std::string& name : info_.classes) fingerprint.add(name);
    info_.fields = table_.fields;
    info_.label_count = options.label_count;
    info_.fingerprint = fingerprint.value();
    info_.anonymous = true;
  }

  std::unique_ptr<RecordStream> open_stream(std::uint64_t first) const override {
    std::optional<ArrowReader> reader;
    {
      const std::lock_guard lock(mutex_);
      reader = std::exchange(first_, std::nullopt);
    }
    if (!reader) {
      reader = opened();
      if (parse_arrow_schema(*reader->schema(), info_.name) != table_.root) {
        throw ConfigError(info_.name + ": opened again, the Arrow stream has other columns than before",
                          "open the same data each time");
      }
    }
    return std::make_unique<ArrowRecords>(table_, std::move(*reader), first);
  }

 private:
  ArrowReader opened() const {
    ArrowArrayStream stream{};
    open_(&stream);
    return ArrowReader(info_.name, ArrowOwned<ArrowArrayStream>::moved(&stream));
  }

  OpenArrow open_;
  StreamTable table_;
  mutable std::mutex mutex_;
  mutable std::optional<ArrowReader> first_;  // opened for the schema, not read yet; guarded by mutex_
};

}  // namespace

SourcePtr arrow_stream(std::function<void(ArrowArrayStream* stream)> open, ArrowOptions options) {
  if (!open) throw ConfigError(options.name + ": an Arrow stream without a function that opens it", "set open");
  return std::make_shared<ArrowStreamSource>(std::move(open), options);
}

}  // namespace headrace
