#include "headrace/devices/base/error.h"

#include <utility>

#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

std::string with_hint(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : message + " (" + hint + ")";
}

std::string with_location(const std::string& message, const DataLocation& at) {
  std::string text = at.source.empty() ? message : at.source + ": " + message;
  if (at.record != DataLocation::kUnknown) text += ", record " + std::to_string(at.record);
  if (at.offset != DataLocation::kUnknown) text += ", byte offset " + std::to_string(at.offset);
  return text;
}

}  // namespace

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kDataCorrupt: return "data_corrupt";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kDevice: return "device";
    case ErrorCode::kOutOfMemory: return "out_of_memory";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string message, std::string hint)
    : std::runtime_error(printable(with_hint(message, hint))),
      code_(code),
      message_(printable(message)),
      hint_(printable(hint)) {}

ConfigError::ConfigError(std::string message, std::string hint)
    : Error(ErrorCode::kInvalidArgument, std::move(message), std::move(hint)) {}

DataError::DataError(ErrorCode code, std::string message, DataLocation location, std::string hint)
    : Error(code, with_location(message, location), std::move(hint)), location_(std::move(location)) {}

DeviceError::DeviceError(ErrorCode code, std::string message, std::string device, std::string hint)
    : Error(code, device + ": " + message, std::move(hint)), device_(std::move(device)) {}

}  // namespace headrace
