// How much memory there is.
#pragma once

#include <cstdint>

namespace headrace {

// The maximum that this process can use, in bytes: the machine's memory, or its control group's limit.
std::uint64_t machine_memory_bytes();

}  // namespace headrace
