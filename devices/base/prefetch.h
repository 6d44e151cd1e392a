// Fetching memory before it is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace headrace {

// The first bytes of what is about to be read, into the second-level cache: its queue is the longer one.
inline void prefetch(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kLine = 64, kMost = 4096;
  for (std::size_t at = 0; at < std::min(bytes.size(), kMost); at += kLine)
    __builtin_prefetch(bytes.data() + at, 0, 2);
}

}  // namespace headrace
