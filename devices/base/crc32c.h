// CRC-32C (Castagnoli): the checksum of TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Uses the processor's instruction where it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;
// The same from a table: what every processor can do, and the oracle for the other.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

// As TFRecord stores it: rotated and moved, so that a checksum of checksums is no special case.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace headrace
