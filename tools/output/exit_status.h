// What the exit status of the command says.
#pragma once

#include <exception>

#include "headrace/devices/base/error.h"

namespace headrace::tools {

inline constexpr int kRunFailed = 1, kWrongUsage = 2;

// A signal ended the run, cleanly and with nothing lost.
class StoppedBySignal : public Error {
 public:
  StoppedBySignal(int signal, const std::string& message)
      : Error(ErrorCode::kCancelled, message), signal_(signal) {}

  int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

// 128 + the signal's number for StoppedBySignal. kWrongUsage where what was asked for cannot be, a ConfigError,
// and nothing else: data that cannot be read, a loss that is no number, a device or a disk that fails are a run
// that failed.
int exit_status(const std::exception& error) noexcept;

}  // namespace headrace::tools
