// Tables of other libraries as sources, and batches as theirs, without a copy: pyarrow, Polars, DuckDB, Hugging
// Face datasets, arrow-rs ... speak Arrow's C interfaces. Their structs are in Arrow's own abi.h, or in
// arrow_structs.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/shared_batch.h"
#include "headrace/pipeline/sources.h"

struct ArrowArray;
struct ArrowArrayStream;
struct ArrowSchema;

namespace HEADRACE_API headrace {

// Says which columns become fields, and how; sources/README.md, "Arrow", has the types. A column within a struct
// is named with a point: "image.bytes". Without further columns (`columns.columns`) the records have the image and
// the label; if there is no image, all columns of numbers.
struct ArrowOptions {
  std::string name = "arrow";
  ColumnOptions columns = {};  // empty: the image is the only column of images, the label "label" if there is one
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;
  // For what is not sliced from the table's own memory: converted numbers, texts, numbers of classes.
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  void each_field(OptionVisitor& visit) {
    visit("name", name, "The source's name, for people.");
    columns.each_field(visit);
    visit("classes", classes, source_sentences::kClasses);
    visit("label_count", label_count, source_sentences::kLabelCount);
    visit("memory_limit", memory_limit, source_sentences::kMemoryLimit);
  }
};

// Takes all batches of the stream, without a copy, and keeps them while the source lives: records are read by
// number. The stream is moved from, also on failure. A null, or an encoded image that is none, makes its record
// bad. The source is identified by its content, however it is cut into batches: all of it up to 256 MiB, beyond
// that all lengths and 4,096 records spread over it. Throws ConfigError naming the columns, or DataError with what
// the stream reported.
SourcePtr arrow_table(ArrowArrayStream* stream, ArrowOptions options = {});

// Serves batch after batch of a stream, which is not kept: for tables larger than memory. `open` fills in a stream
// at its first batch; it is called once at once, for the schema, and then by each further loader, on one thread of
// the engine. Lists have a varying first extent; texts are their bytes, of any length; the names of classes must
// be given. As record_stream(), the source is read in order.
SourcePtr arrow_stream(std::function<void(ArrowArrayStream* stream)> open, ArrowOptions options = {});

// Exports the real examples of the batch as a struct of its fields: scalars as numbers, vectors as fixed-size
// lists, others as arrow.fixed_shape_tensor. The arrays point to the batch's memory, are read-only and share the
// batch until released. Waits until the batch is ready. Throws ConfigError if the batch is in a GPU's memory, or
// for bfloat16, which Arrow does not have.
void export_arrow(const SharedBatch& batch, ArrowSchema* schema, ArrowArray* array);

// A column of a table in memory: numbers, or texts.
struct ArrowTableColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape = {};                                    // of one row's numbers
  const void* data = nullptr;                          // all rows, back to back
  std::shared_ptr<const void> owner = {};              // of `data`
  std::optional<std::vector<std::string>> texts = {};  // UTF-8, one a row, in place of numbers
  std::vector<bool> known = {};                        // rows that are not null; empty: all
};

// Exports columns of `rows` rows as a stream of one batch, with types as export_arrow() has them; texts are
// large_utf8. Numbers are not copied: each column's owner lives until its array is released. Throws ConfigError
// for bfloat16, and for texts or nulls of another number of rows.
void export_arrow_table(std::vector<ArrowTableColumn> columns, std::int64_t rows, ArrowArrayStream* stream);

}  // namespace headrace
