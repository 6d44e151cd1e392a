// bf16, the upper half of an f32: for values at rest. Arithmetic is done in f32.
#pragma once

#include <bit>
#include <cstdint>

#include "headrace/devices/base/dtype.h"

namespace headrace {

struct BFloat16 {
  std::uint16_t bits;
};

template <>
constexpr DType dtype_of<BFloat16>() noexcept {
  return DType::kBF16;
}

constexpr float widened(BFloat16 x) noexcept { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

// The nearest, ties to even. NaN stays NaN.
constexpr BFloat16 nearest_bf16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return {static_cast<std::uint16_t>(x == x ? rounded : (bits >> 16) | 0x40U)};
}

}  // namespace headrace
