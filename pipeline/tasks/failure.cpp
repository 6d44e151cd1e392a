#include "headrace/pipeline/tasks/failure.h"

#include <new>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/operations/machinery/step.h"

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

// Returns the error's hint or, if it has none, the hint for a record whose bytes are bad.
std::string hint_for(const Failure& failure) {
  if (!failure.hint.empty() || failure.what.code != ErrorCode::kDataCorrupt) return failure.hint;
  return joined(
      {"repair or remove the record", advice("pass over bad ones: {}", named("ErrorPolicy::on_error", "skip"))});
}

// Returns the message without the device's name.
std::string bare_message(const DeviceError& error) {
  const std::string begin = error.device() + ": ";
  return error.message().starts_with(begin) ? error.message().substr(begin.size()) : error.message();
}

}  // namespace

Failure Failure::of_batch(const std::exception& cause) {
  if (const auto* error = dynamic_cast<const DeviceError*>(&cause)) {
    return {.what = {.code = error->code(), .cause = bare_message(*error)},
            .hint = error->hint(),
            .device = error->device()};
  }
  if (const auto* error = dynamic_cast<const Error*>(&cause)) {
    return {.what = {.code = error->code(), .cause = error->message()}, .hint = error->hint()};
  }
  if (is_bare_refusal(cause)) return of_batch(explain_refusal(cause, "the input engine"));
  return {.what = {.code = ErrorCode::kInternal, .cause = cause.what()}};
}

Failure Failure::of_record(const Source& source, std::uint64_t record, std::int64_t row,
                           const std::exception& cause) {
  Failure failure = of_batch(cause);
  failure.what.row = row;
  failure.what.source = source.info().name;
  failure.what.record = record;
  if (const auto* filter = dynamic_cast<const FilterError*>(&cause)) {
    failure.what.operation = filter->operation();
    failure.what.cause = filter->cause();
    failure.what.offset = filter->location().offset;
  } else if (const auto* data = dynamic_cast<const DataError*>(&cause)) {
    failure.what.operation = "source read";
    failure.what.cause = bare_message(*data);
    failure.what.offset = data->location().offset;
  } else if (const auto* step = dynamic_cast<const StepError*>(&cause)) {
    failure.what.operation = step->step();
    failure.what.cause = step->cause();
  }
  if (failure.what.offset == DataLocation::kUnknown) failure.what.offset = source.offset(record);
  try {
    failure.what.name = source.describe(record);
  } catch (const std::exception&) {
    failure.what.name = "a record that cannot be named";
  }
  return failure;
}

Failure Failure::of_thread(const std::exception& cause, const std::string& doing) noexcept {
  Failure failure;
  try {
    failure = of_batch(cause);
    if (failure.what.operation.empty()) failure.what.operation = doing;
  } catch (const std::exception&) {
    failure.what.code = ErrorCode::kOutOfMemory;
  }
  return failure;
}

bool Failure::is_of_record() const noexcept {
  switch (what.code) {
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kDevice:
    case ErrorCode::kCancelled:
    case ErrorCode::kTimeout: return false;
    default: return !what.source.empty();
  }
}

void Failure::raise() const {
  if (what.source.empty() && !device.empty()) throw DeviceError(what.code, describe(what), device, hint);
  if (what.source.empty()) throw Error(what.code, describe(what), hint);
  throw DataError(what.code, describe(what), {.source = what.source, .record = what.record, .offset = what.offset},
                  hint_for(*this));
}

}  // namespace headrace
