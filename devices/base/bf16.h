// bf16, the upper half of an f32: for values at rest. Arithmetic is done in f32. The conversions are inlined
// everywhere: a call, even of std::bit_cast, keeps the CPU kernels' loops from becoming vector code.
#pragma once

#include <cstdint>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/dtype.h"

namespace HEADRACE_API headrace {

struct BFloat16 {
  std::uint16_t bits;
};

template <>
constexpr DType dtype_of<BFloat16>() noexcept {
  return DType::kBF16;
}

[[gnu::always_inline]] constexpr float widened(BFloat16 x) noexcept {
  return __builtin_bit_cast(float, std::uint32_t{x.bits} << 16);
}

// Rounds to the nearest, ties to even. NaN stays NaN.
[[gnu::always_inline]] constexpr BFloat16 nearest_bf16(float x) noexcept {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return {static_cast<std::uint16_t>(x == x ? rounded : (bits >> 16) | 0x40U)};
}

}  // namespace headrace
