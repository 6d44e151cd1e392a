// Plain code that both GPU and host run: its marks, and the elements it reads and writes. Private to the CUDA
// backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/tensor.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>

#define HEADRACE_HOST_DEVICE __host__ __device__ inline
#else
#define HEADRACE_HOST_DEVICE inline
#endif

// Before a loop: keeps nvcc from unrolling it. Unrolling short loops costs registers and gains nothing.
// UNROLLED(n) unrolls it n times, n being a constant expression.
#ifdef __CUDA_ARCH__
#define HEADRACE_PRAGMA(text) _Pragma(#text)
#define HEADRACE_UNROLLED(rounds) HEADRACE_PRAGMA(unroll rounds)
#define HEADRACE_ROLLED HEADRACE_UNROLLED(1)
#else
#define HEADRACE_UNROLLED(rounds)
#define HEADRACE_ROLLED
#endif

namespace headrace::cuda {

// Elements at rest (f32, bf16, bytes, whole numbers) and in arithmetic (f32), one or several at a time.

HEADRACE_HOST_DEVICE float value_of(float x) { return x; }
HEADRACE_HOST_DEVICE float value_of(BFloat16 x) { return widened(x); }
HEADRACE_HOST_DEVICE float value_of(std::uint8_t x) { return static_cast<float>(x); }
HEADRACE_HOST_DEVICE float value_of(std::int64_t x) { return static_cast<float>(x); }

// Returns the T, f32 or bf16, nearest to x.
template <typename T>
HEADRACE_HOST_DEVICE T element_of(float x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
#ifdef __CUDA_ARCH__
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};  // one instruction
#else
    return nearest_bf16(x);
#endif
  } else {
    return x;
  }
}

// kWidth neighbours, moved by one instruction if they are at most 16 bytes.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Pack {
  T values[kWidth];
};

template <int kWidth, typename T>
HEADRACE_HOST_DEVICE Pack<T, kWidth> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}
template <int kWidth, typename T>
HEADRACE_HOST_DEVICE void store_pack(T* to, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

// The number of T that 16 bytes hold.
template <typename T>
inline constexpr int kPackWidth = static_cast<int>(16 / sizeof(T));

// The columns of a thread that keeps sums or many constants of each: more would take registers from other blocks
// (tests/devices/cuda/kernel_budgets.txt).
inline constexpr int kNarrowWidth = 4;
constexpr int narrow_width(int width) { return width < kNarrowWidth ? width : kNarrowWidth; }

// Returns whether packs of `width` elements may be moved from and to the view.
inline bool packs_fit(const TensorView& view, int width) {
  const std::size_t bytes = size_of(view.dtype) * static_cast<std::size_t>(width);
  return reinterpret_cast<std::uintptr_t>(view.data) % (bytes < 16 ? bytes : 16) == 0;
}
template <typename... Views>
bool packs_fit([[maybe_unused]] int width, const Views&... views) {
  return (packs_fit(views, width) && ...);
}

// Calls function(T{}) with the type of the activations: f32 or bf16.
template <typename Function>
void by_type(DType dtype, const Function& function) {
  if (dtype == DType::kBF16) return function(BFloat16{});
  function(float{});
}

// Calls function(integral_constant) with a width: kWidth, or 1 if packs do not fit.
template <int kWidth, typename Function>
void by_width(bool fits, const Function& function) {
  if (fits) return function(std::integral_constant<int, kWidth>{});
  function(std::integral_constant<int, 1>{});
}

}  // namespace headrace::cuda
