#include "headrace/pipeline/engine/failure.h"

#include <new>

namespace headrace {

Failure Failure::of_batch(const std::exception& cause) {
  if (const auto* error = dynamic_cast<const Error*>(&cause)) {
    return {.code = error->code(), .message = error->message(), .hint = error->hint(), .location = {}};
  }
  const bool memory = dynamic_cast<const std::bad_alloc*>(&cause) != nullptr;
  return {.code = memory ? ErrorCode::kOutOfMemory : ErrorCode::kInternal,
          .message = cause.what(),
          .hint = {},
          .location = {}};
}

Failure Failure::of_record(const Source& source, std::uint64_t record, std::int64_t row, const std::exception& cause) {
  Failure failure = of_batch(cause);
  failure.row = row;
  failure.location = {.source = source.info().name, .record = record};
  if (const auto* data = dynamic_cast<const DataError*>(&cause)) failure.location.offset = data->location().offset;
  std::string name;
  try {
    name = source.describe(record);
  } catch (const std::exception&) {
    name = "a record that cannot be named";
  }
  failure.message = name + ": " + failure.message;
  return failure;
}

void Failure::raise() const {
  if (location.source.empty()) throw Error(code, message, hint);
  throw DataError(code, message, location, hint);
}

}  // namespace headrace
