// The environment variables of the CUDA backend. Private to it.
#pragma once

#include <chrono>

#include "headrace/devices/base/environment.h"

namespace headrace {

// Returns how long replicas wait for one another. Throws ConfigError.
inline std::chrono::seconds collective_timeout() {
  return std::chrono::seconds(environment_number("HEADRACE_COLLECTIVE_TIMEOUT", 30, 1, 86400, "seconds"));
}

// Returns how long a thread that waits for a GPU polls before it blocks: by default about as long as waking it
// takes, so that a wait costs at most twice what the better of the two would. Throws ConfigError.
inline std::chrono::microseconds polling_time() {
  return std::chrono::microseconds(
      environment_number("HEADRACE_CUDA_POLL_US", 50, 0, 1'000'000'000, "microseconds"));
}

}  // namespace headrace
