// The amount of memory, and blocks of many pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace headrace {

// Memory for blocks of many pages.
struct FreeMemory {
  void operator()(std::byte* memory) const noexcept;
};
using LargeMemory = std::unique_ptr<std::byte, FreeMemory>;

// Allocates uninitialised memory, aligned to 64 bytes; null if there is none left. Blocks of megabytes lie on huge
// pages if the system has them (on Linux also if it gives them only on request). That saves a page walk for nearly
// every sample and row, which on a virtual machine costs as much as reading it. REQUIRES: `bytes` > 0.
LargeMemory allocate_large(std::size_t bytes) noexcept;

// Returns the maximum that this process can use, in bytes: the machine's memory, or its control group's limit.
std::uint64_t machine_memory_bytes();

}  // namespace headrace
