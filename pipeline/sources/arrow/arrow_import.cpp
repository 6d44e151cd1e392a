#include "headrace/pipeline/sources/arrow/arrow_import.h"

#include <fmt/format.h>

#include <cstring>

#include "headrace/devices/base/error.h"

namespace headrace {

ArrowReader::ArrowReader(std::string source, ArrowOwned<ArrowArrayStream> stream)
    : source_(std::move(source)), stream_(std::move(stream)) {
  if (stream_.is_filled()) return;
  throw ConfigError(source_ + ": the Arrow stream has been released or read already",
                    "make a stream for each source");
}

void ArrowReader::fail(int code, const char* doing) {
  const char* message = stream_->get_last_error != nullptr ? stream_->get_last_error(stream_.get()) : nullptr;
  throw DataError(
      ErrorCode::kDataCorrupt,
      fmt::format("{} of the Arrow stream failed: {}", doing, message != nullptr ? message : std::strerror(code)),
      {.source = source_});
}

ArrowOwned<ArrowSchema> ArrowReader::schema() {
  ArrowOwned<ArrowSchema> schema;
  if (const int code = stream_->get_schema(stream_.get(), schema.get()); code != 0)
    fail(code, "reading the schema");
  return schema;
}

std::optional<ArrowBatch> ArrowReader::next() {
  ArrowBatch batch;
  if (const int code = stream_->get_next(stream_.get(), batch.get()); code != 0) fail(code, "reading a batch");
  if (!batch.is_filled()) return std::nullopt;
  return batch;
}

}  // namespace headrace
