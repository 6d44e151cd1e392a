// The exceptions of the library. An Error says what was wrong, where, and what to do next.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

enum class ErrorCode {
  kInvalidArgument,  // the caller's configuration or argument is wrong
  kNotFound,         // a path, device, name or record does not exist
  kUnsupported,      // understood, but this build or device cannot do it
  kDataCorrupt,      // bytes that do not mean what their format says they mean
  kIo,               // the operating system refused or a read came short
  kDevice,           // a device or its driver failed
  kOutOfMemory,      // an allocation or a budget was exhausted
  kCancelled,        // stopped on request
  kTimeout,          // a watchdog expired; the message names who was waited for
  kInternal,         // a broken invariant of Headrace itself
};

// Returns a stable lower-case name such as "invalid_argument".
const char* to_string(ErrorCode code) noexcept;

// what() is "message (hint)", made printable (text.h). Copyable; thread-compatible.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string message, std::string hint = {});

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  // Returns what the user can do next; may be empty.
  const std::string& hint() const noexcept { return hint_; }

 private:
  ErrorCode code_;
  std::string message_;
  std::string hint_;
};

// The user asked for something impossible: wrong option, unknown name, mismatched shapes.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::string message, std::string hint = {});
};

// The place in the input where a DataError happened. Unknown parts keep their defaults.
struct DataLocation {
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  std::string source;               // a path, or a name for in-memory data; bytes unchanged
  std::uint64_t record = kUnknown;  // index within the source
  std::uint64_t offset = kUnknown;  // byte offset within the file
};

// The input is missing, unreadable or malformed. The message contains the location.
class DataError : public Error {
 public:
  DataError(ErrorCode code, std::string message, DataLocation location, std::string hint = {});

  const DataLocation& location() const noexcept { return location_; }

 private:
  DataLocation location_;
};

// A device call failed. The message contains the device's name.
class DeviceError : public Error {
 public:
  DeviceError(ErrorCode code, std::string message, std::string device, std::string hint = {});

  const std::string& device() const noexcept { return device_; }

 private:
  std::string device_;
};

}  // namespace headrace
