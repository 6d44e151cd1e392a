// Turns the system's refusals of memory and threads into errors that say what failed and what to do.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"

namespace HEADRACE_API headrace {

// Returns an Error(kOutOfMemory): there was no memory for `what` ("a batch"). `bytes` 0: size unknown.
Error no_memory_for(const std::string& what, std::uint64_t bytes = 0);

// Returns whether the exception says only that memory or threads ran out.
bool is_bare_refusal(const std::exception& cause) noexcept;
// Returns an error that explains the exception; `doing` is the activity: "decode". REQUIRES:
// is_bare_refusal(cause).
Error explain_refusal(const std::exception& cause, const std::string& doing);

// Starts a thread for `what` ("a replica's stream"). Throws Error(kIo) if the system has none left.
std::thread start_thread(const std::string& what, std::function<void()> body);

}  // namespace headrace
