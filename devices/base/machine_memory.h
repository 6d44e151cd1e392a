// How much memory there is.
#pragma once

#include <cstdint>

namespace headrace {

// Bytes that this process can use at most: the machine's memory, or what its control group leaves it of that.
std::uint64_t machine_memory_bytes();

}  // namespace headrace
