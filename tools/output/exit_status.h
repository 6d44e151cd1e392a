// The exit status of the command.
#pragma once

#include <exception>

#include "headrace/devices/base/error.h"

namespace headrace::tools {

inline constexpr int kRunFailed = 1, kWrongUsage = 2;
inline constexpr int kRestart = 75;  // EX_TEMPFAIL of sysexits.h

// Thrown when a signal ended the run, cleanly and with nothing lost.
class StoppedBySignal : public Error {
 public:
  StoppedBySignal(int signal, const std::string& message)
      : Error(ErrorCode::kCancelled, message), signal_(signal) {}

  int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

// Thrown by a worker that ends because of another one: a launcher may start all of them again.
class EndedByAnother : public Error {
 public:
  explicit EndedByAnother(const Error& error) : Error(error.code(), error.message(), error.hint()) {}
};

// Returns 128 + the signal's number for StoppedBySignal, kRestart for EndedByAnother, and kWrongUsage only for an
// impossible request, a ConfigError, unless only together with other workers it is one. Unreadable data, a loss
// that is not a number, and a failing device or disk are a failed run.
int exit_status(const std::exception& error) noexcept;

}  // namespace headrace::tools
