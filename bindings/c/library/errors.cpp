#include "headrace/bindings/c/library/errors.h"

#include <fmt/format.h>

#include <new>
#include <optional>

namespace headrace::c {
namespace {

// The thread's last error, and the strings that it points to.
struct LastError {
  std::string message, hint, what, source, device;
  hr_error error{.size = sizeof(hr_error),
                 .code = HR_OK,
                 .kind = "",
                 .message = "",
                 .hint = "",
                 .what = "",
                 .source = "",
                 .record = HR_UNKNOWN,
                 .offset = HR_UNKNOWN,
                 .device = ""};
};
thread_local LastError last;
thread_local unsigned errors = 0;  // errors kept

// The failure that a callback of this thread reported.
struct Said {
  hr_status status = HR_OK;
  std::string message, hint;
};
thread_local std::optional<Said> said;

hr_status status_of(ErrorCode code) noexcept { return static_cast<hr_status>(code) + 1; }

ErrorCode code_of(hr_status status) noexcept {
  const bool known = status > HR_OK && status <= HR_INTERNAL;
  return known ? static_cast<ErrorCode>(status - 1) : ErrorCode::kInternal;
}

hr_status keep_plain(hr_status code, const char* kind, std::string message, std::string hint, std::string what) {
  LastError kept;
  kept.message = std::move(message);
  kept.hint = std::move(hint);
  kept.what = std::move(what);
  kept.error.code = code;
  kept.error.kind = kind;
  last = std::move(kept);
  return code;
}

// Short strings move with the object that holds them, so the pointers are set once it is in place.
void point_to_strings() noexcept {
  last.error.message = last.message.c_str();
  last.error.hint = last.hint.c_str();
  last.error.what = last.what.c_str();
  last.error.source = last.source.c_str();
  last.error.device = last.device.c_str();
}

hr_status keep_known(const Error& error, const char* kind) {
  return keep_plain(status_of(error.code()), kind, error.message(), error.hint(), error.what());
}

hr_status keep_current() {
  try {
    throw;
  } catch (const DataError& error) {
    const hr_status status = keep_known(error, "DataError");
    last.source = error.location().source;
    last.error.record = error.location().record;
    last.error.offset = error.location().offset;
    return status;
  } catch (const DeviceError& error) {
    const hr_status status = keep_known(error, "DeviceError");
    last.device = error.device();
    return status;
  } catch (const ConfigError& error) {
    return keep_known(error, "ConfigError");
  } catch (const Error& error) {
    return keep_known(error, "Error");
  } catch (const std::bad_alloc&) {
    return keep_plain(HR_OUT_OF_MEMORY, "Error", "out of memory", {}, "out of memory");
  } catch (const std::exception& error) {
    return keep_plain(HR_INTERNAL, "Error", error.what(), {}, error.what());
  } catch (...) {
    return keep_plain(HR_INTERNAL, "Error", "an exception of an unknown kind", {},
                      "an exception of an unknown kind");
  }
}

// Records HR_OUT_OF_MEMORY if there is no memory for more.
hr_status keep_out_of_memory() noexcept {
  last.error.code = HR_OUT_OF_MEMORY;
  last.error.kind = "Error";
  last.error.message = last.error.what = "out of memory";
  last.error.hint = last.error.source = last.error.device = "";
  last.error.record = last.error.offset = HR_UNKNOWN;
  return HR_OUT_OF_MEMORY;
}

}  // namespace

thread_local const char* current_function = "";

void require(const void* pointer, const char* name) {
  if (pointer != nullptr) return;
  throw ConfigError(fmt::format("{}: {} is null", current_function, name), "pass a pointer to one");
}

hr_status keep_error() noexcept {
  try {
    const hr_status status = keep_current();
    point_to_strings();
    ++errors;
    return status;
  } catch (...) {
    return keep_out_of_memory();
  }
}

Callback::Callback(const char* name) noexcept : name_(name), errors_before_(errors) { said.reset(); }

void Callback::end(hr_status status) const {
  if (status == HR_OK) return;
  Said failure{.status = status, .message = {}, .hint = {}};
  if (said && said->status == status) {
    failure = std::move(*said);
  } else if (errors != errors_before_ && last.error.code == status) {
    failure = {.status = status, .message = last.message, .hint = last.hint};
  } else {
    failure.message = fmt::format("{} returned {} ({})", name_, status, hr_status_name(status));
  }
  said.reset();
  switch (const ErrorCode code = code_of(status)) {
    case ErrorCode::kInvalidArgument: throw ConfigError(failure.message, failure.hint);
    case ErrorCode::kNotFound:
    case ErrorCode::kDataCorrupt:
    case ErrorCode::kIo: throw DataError(code, failure.message, {}, failure.hint);
    default: throw Error(code, failure.message, failure.hint);
  }
}

}  // namespace headrace::c

using headrace::c::last;
using headrace::c::said;

const hr_error* hr_last_error(void) { return &last.error; }

const char* hr_status_name(hr_status status) {
  if (status == HR_OK) return "ok";
  if (status < HR_OK || status > HR_INTERNAL) return "unknown";
  return headrace::to_string(static_cast<headrace::ErrorCode>(status - 1));
}

hr_status hr_fail(hr_status status, const char* message, const char* hint) {
  try {
    said = {.status = status, .message = message != nullptr ? message : "", .hint = hint != nullptr ? hint : ""};
    if (said->message.empty()) said.reset();
  } catch (...) {
    said.reset();
  }
  return status;
}
