// Tables of other libraries as sources, and batches as theirs, without a copy: pyarrow, Polars, DuckDB, Hugging
// Face datasets, arrow-rs ... speak Arrow's C interfaces. Their structs are in Arrow's own abi.h, or in
// arrow_structs.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/shared_batch.h"
#include "headrace/pipeline/sources.h"

struct ArrowArray;
struct ArrowArrayStream;
struct ArrowSchema;

namespace HEADRACE_API headrace {

// Says which columns become fields, and how; sources/README.md, "Arrow", has the types. A column within a struct
// is named with a point: "image.bytes". Without further columns (`columns.more`) the records have the image and
// the label; if there is no image, all columns of numbers.
struct ArrowOptions {
  std::string name = "arrow";
  ColumnOptions columns = {};  // image: empty: the only column of images; label: empty: "label", if there is one
  std::vector<std::string> classes = {};  // class names by label, if the table does not have them
  std::uint64_t label_count = 0;          // as in SourceInfo
  // For what is not sliced from the table's own memory: converted numbers, texts, numbers of classes.
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
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

}  // namespace headrace
