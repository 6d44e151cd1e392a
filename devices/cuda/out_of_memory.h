// The error of an allocation for which a GPU or the host has no room. Private to the CUDA backend.
#pragma once

#include <cstddef>

#include "headrace/devices/buffer.h"

namespace headrace {

class Device;

// On the current device, which is `device`'s.
[[noreturn]] void throw_out_of_memory(const Device& device, std::size_t bytes, MemoryPlace place);

}  // namespace headrace
