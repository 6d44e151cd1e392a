// The memory of this process.
#pragma once

#include <cstdint>

namespace headrace::tools {

// Returns the resident set size in bytes; 0 if the system does not report it.
std::uint64_t resident_memory_bytes();

// Returns its maximum so far; 0 if the system does not report it.
std::uint64_t peak_resident_memory_bytes();

}  // namespace headrace::tools
