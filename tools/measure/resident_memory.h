// How much memory this process holds.
#pragma once

#include <cstdint>

namespace headrace::tools {

// Resident set size in bytes; 0 where the system does not tell.
std::uint64_t resident_memory_bytes();

// Its maximum so far; 0 where the system does not tell.
std::uint64_t peak_resident_memory_bytes();

}  // namespace headrace::tools
