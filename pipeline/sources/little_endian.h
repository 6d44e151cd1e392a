// Numbers as most file formats store them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace {

// Returns the unsigned number in the `size` bytes from `at`, lowest first. REQUIRES: size <= 8, within `bytes`.
inline std::uint64_t little_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t size) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

}  // namespace headrace
