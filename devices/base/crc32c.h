// CRC-32C (Castagnoli): the checksum of TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Uses the processor's instruction if it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;
// Computes crc32c() from a table: works on every processor and is the reference for crc32c().
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

// Masks a checksum as TFRecord stores it: rotated plus a constant, so that checksums of checksums are no special
// case.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace headrace
