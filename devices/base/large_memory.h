// Memory for blocks of many pages.
#pragma once

#include <cstddef>
#include <memory>

namespace headrace {

struct FreeMemory {
  void operator()(std::byte* memory) const noexcept;
};
using LargeMemory = std::unique_ptr<std::byte, FreeMemory>;

// `bytes` > 0, not initialised, at a multiple of 64; null where there is no memory. What takes megabytes lies on
// large pages where the system gives them (Linux: also where it does so on request only), which saves finding the
// page of nearly every sample and row: on a virtual machine that costs as much as reading it.
LargeMemory allocate_large(std::size_t bytes) noexcept;

}  // namespace headrace
