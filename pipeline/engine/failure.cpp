#include "headrace/pipeline/engine/failure.h"

#include <new>

namespace headrace {
namespace {

// The message without the location that DataError put around it: it is put there again when the failure is
// raised.
std::string bare_message(const DataError& error) {
  const DataLocation& at = error.location();
  std::string text = error.message();
  std::string end;
  if (at.record != DataLocation::kUnknown) end += ", record " + std::to_string(at.record);
  if (at.offset != DataLocation::kUnknown) end += ", byte offset " + std::to_string(at.offset);
  if (text.ends_with(end)) text.resize(text.size() - end.size());
  const std::string begin = at.source + ": ";
  return text.starts_with(begin) ? text.substr(begin.size()) : text;
}

}  // namespace

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

Failure Failure::of_record(const Source& source, std::uint64_t record, std::int64_t row,
                           const std::exception& cause) {
  Failure failure = of_batch(cause);
  failure.row = row;
  failure.location = {.source = source.info().name, .record = record};
  if (const auto* data = dynamic_cast<const DataError*>(&cause)) {
    failure.message = "source read: " + bare_message(*data);
    failure.location.offset = data->location().offset;
  }
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
