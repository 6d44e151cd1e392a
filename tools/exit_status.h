// What the exit status of the command says.
#pragma once

#include <exception>

namespace headrace::tools {

inline constexpr int kRunFailed = 1, kWrongUsage = 2;

// kWrongUsage where what was asked for cannot be, a ConfigError, and nothing else: data that cannot be read, a
// loss that is no number, a device or a disk that fails are a run that failed.
int exit_status(const std::exception& error) noexcept;

}  // namespace headrace::tools
