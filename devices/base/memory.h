// How much memory there is, and blocks of it of many pages.
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

// `bytes` > 0, uninitialised, aligned to 64; null if there is no memory. Blocks of megabytes lie on huge pages
// where the system has them (on Linux also where it gives them on request only). That saves a page walk for nearly
// every sample and row, which on a virtual machine costs as much as reading it.
LargeMemory allocate_large(std::size_t bytes) noexcept;

// The maximum that this process can use, in bytes: the machine's memory, or its control group's limit.
std::uint64_t machine_memory_bytes();

}  // namespace headrace
