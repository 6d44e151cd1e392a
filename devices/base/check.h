// HEADRACE_CHECK: an invariant of Headrace itself. A breach is a bug, never the user's mistake.
#pragma once

#include <string>

#include "headrace/devices/base/error.h"

namespace headrace::detail {
[[noreturn]] inline void check_failed(const char* condition, const char* file, int line,
                                      const std::string& message) {
  throw Error(ErrorCode::kInternal, message + " [" + condition + " at " + file + ":" + std::to_string(line) + "]",
              "this is a bug in Headrace; please report it with the command that led here");
}
}  // namespace headrace::detail

#define HEADRACE_CHECK(condition, message)                                                       \
  do {                                                                                           \
    if (!(condition)) ::headrace::detail::check_failed(#condition, __FILE__, __LINE__, message); \
  } while (false)
