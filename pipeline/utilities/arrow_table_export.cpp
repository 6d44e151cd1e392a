// Columns in memory as a stream of Arrow.
#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/arrow_structs.h"
#include "headrace/pipeline/utilities/exported_arrow.h"

namespace headrace {
namespace {

// A column with what Arrow's layout has besides its numbers.
struct LaidOutColumn {
  ArrowTableColumn column;
  std::vector<std::uint8_t> known = {};  // a bitmap; empty: all are
  std::int64_t nulls = 0;
  std::vector<std::int64_t> offsets = {};  // of texts
  std::string characters = {};
};

struct ExportedTable {
  std::vector<LaidOutColumn> columns;
  std::int64_t rows = 0;
};

struct TableStream {
  std::shared_ptr<const ExportedTable> table;
  bool ended = false;
  std::string error = {};
};

void require_rows(const ArrowTableColumn& column, const char* what, std::size_t given, std::int64_t rows) {
  if (std::cmp_equal(given, rows)) return;
  throw ConfigError(fmt::format("column '{}' has {} {} for {} rows", column.name, given, what, rows),
                    "give one for each row");
}

LaidOutColumn laid_out(ArrowTableColumn column, std::int64_t rows) {
  LaidOutColumn out{.column = std::move(column)};
  const ArrowTableColumn& given = out.column;
  if (!given.known.empty()) {
    require_rows(given, "flags of nulls", given.known.size(), rows);
    out.known.resize(given.known.size() / 8 + 1);
    for (std::size_t i = 0; i < given.known.size(); ++i) {
      if (given.known[i]) out.known[i / 8] |= static_cast<std::uint8_t>(1U << (i % 8));
      if (!given.known[i]) ++out.nulls;
    }
  }
  if (!given.texts) {
    arrow_format(given.name, given.dtype);  // throws for types that Arrow does not have
    return out;
  }
  require_rows(given, "texts", given.texts->size(), rows);
  out.offsets.push_back(0);
  for (const std::string& text : *given.texts) {
    out.characters += text;
    out.offsets.push_back(std::ssize(out.characters));
  }
  return out;
}

void export_column_schema(const LaidOutColumn& laid, ArrowSchema* schema) {
  const std::int64_t flags = laid.known.empty() ? 0 : ARROW_FLAG_NULLABLE;
  const ArrowTableColumn& column = laid.column;
  if (!column.texts) return export_numbers_schema(column.name, column.dtype, column.shape, flags, schema);
  auto exported = std::make_unique<ExportedSchema>();
  exported->format = "U";
  exported->name = column.name;
  exported->flags = flags;
  ExportedSchema::fill(std::move(exported), schema);
}

void export_column(const std::shared_ptr<const ExportedTable>& table, const LaidOutColumn& laid,
                   ArrowArray* array) {
  auto exported = std::make_unique<ExportedArray>();
  exported->owner = table;
  exported->nulls = laid.nulls;
  if (!laid.known.empty()) exported->buffers[0] = laid.known.data();
  const ArrowTableColumn& column = laid.column;
  if (!column.texts) return export_numbers(std::move(exported), column.data, column.shape, table->rows, array);
  exported->buffers[1] = laid.offsets.data();
  exported->buffers[2] = laid.characters.data();
  ExportedArray::fill(std::move(exported), table->rows, 3, array);
}

// Calls export_it(stream) as Arrow calls functions: 0, or errno with a text.
template <typename Export>
int guarded_export(ArrowArrayStream* self, const Export& export_it) {
  auto& stream = *static_cast<TableStream*>(self->private_data);
  try {
    export_it(stream);
    return 0;
  } catch (const std::exception& error) {
    stream.error = error.what();
    return ENOMEM;
  }
}

int table_schema(ArrowArrayStream* self, ArrowSchema* out) {
  return guarded_export(self, [&](const TableStream& stream) {
    auto root = std::make_unique<ExportedSchema>();
    root->format = "+s";
    root->children.reserve(stream.table->columns.size());
    for (const LaidOutColumn& laid : stream.table->columns) {
      export_column_schema(laid, &root->children.emplace_back());
    }
    ExportedSchema::fill(std::move(root), out);
  });
}

int next_of_table(ArrowArrayStream* self, ArrowArray* out) {
  return guarded_export(self, [&](TableStream& stream) {
    *out = {};
    if (stream.ended) return;
    auto root = std::make_unique<ExportedArray>();
    root->owner = stream.table;
    root->children.reserve(stream.table->columns.size());
    for (const LaidOutColumn& laid : stream.table->columns) {
      export_column(stream.table, laid, &root->children.emplace_back());
    }
    ExportedArray::fill(std::move(root), stream.table->rows, 1, out);
    stream.ended = true;
  });
}

}  // namespace

void export_arrow_table(std::vector<ArrowTableColumn> columns, std::int64_t rows, ArrowArrayStream* stream) {
  auto table = std::make_shared<ExportedTable>();
  table->rows = rows;
  table->columns.reserve(columns.size());
  for (ArrowTableColumn& column : columns) table->columns.push_back(laid_out(std::move(column), rows));
  *stream = {
      .get_schema = table_schema,
      .get_next = next_of_table,
      .get_last_error =
          [](ArrowArrayStream* self) { return static_cast<TableStream*>(self->private_data)->error.c_str(); },
      .release =
          [](ArrowArrayStream* self) {
            delete static_cast<TableStream*>(self->private_data);
            self->release = nullptr;
          },
      .private_data = new TableStream{.table = std::move(table)}};
}

}  // namespace headrace
