// The system's refusals of memory and threads, as errors that say for what and what to do.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"

namespace HEADRACE_API headrace {

// Error(kOutOfMemory). `what` was not to be had: "a batch"; `bytes` 0: it is not known how many it takes.
Error no_memory_for(const std::string& what, std::uint64_t bytes = 0);

// Whether the exception says that memory ran out, or threads, and nothing else.
bool is_bare_refusal(const std::exception& cause) noexcept;
// What such an exception means; `doing` is what was done: "decode". REQUIRES: is_bare_refusal(cause).
Error explain_refusal(const std::exception& cause, const std::string& doing);

// Starts a thread for `what`: "a replica's stream". Error(kIo) where the system has none left.
std::thread start_thread(const std::string& what, std::function<void()> body);

}  // namespace headrace
