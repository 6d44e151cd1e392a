// Deadlines as gRPC wants them.
#pragma once

#include <chrono>
#include <cstdint>

namespace headrace {

inline std::chrono::system_clock::time_point after_seconds(double seconds) {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace headrace
