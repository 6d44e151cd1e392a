// An activation's element in the loops of the CPU kernels: f32, or bf16 that is widened on reading and rounded on
// writing. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <type_traits>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/simd.h"

namespace headrace::cpu {

HEADRACE_INLINE float value(std::uint8_t x) noexcept { return static_cast<float>(x); }
HEADRACE_INLINE float value(std::int64_t x) noexcept { return static_cast<float>(x); }
HEADRACE_INLINE float value(float x) noexcept { return x; }
HEADRACE_INLINE float value(BFloat16 x) noexcept { return widened(x); }

template <typename T>
HEADRACE_INLINE T element(float x) noexcept {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return nearest_bf16(x);
  } else {
    return x;
  }
}

// Calls function(T{}) with the type of an activation's elements.
template <typename Function>
void with_type(DType type, const Function& function) {
  if (type == DType::kBF16) {
    function(BFloat16{});
  } else {
    function(float{});
  }
}

}  // namespace headrace::cpu
