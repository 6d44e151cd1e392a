// An activation's element, functions of one element over ranges of any length, and sums in one fixed order.
// Private to the CPU backend.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/simd.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// An activation's element in the loops of the CPU kernels: f32, or bf16 that is widened on reading and rounded on
// writing.

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

// Functions of one element, over ranges of any length; In, Out and T are float or BFloat16.

// y may be x. kNone copies, kSoftmax does nothing.
template <typename In, typename Out>
void activate(Activation activation, const In* x, Out* y, std::int64_t count);  // not from BFloat16 to float
// Takes the result as x if slope_from_result(). dx may be dy.
template <typename T>
void activate_backward(Activation activation, const T* x, const T* dy, T* dx, std::int64_t count);
// sum may be a or b.
template <typename T>
void add(const T* a, const T* b, T* sum, std::int64_t count);

// y = activation(y + bias), bias of `columns` elements repeating; null: 0.
template <typename T>
void add_bias(Activation activation, const float* bias, T* y, std::int64_t rows, std::int64_t columns);

// y = factor x. x may be std::uint8_t or std::int64_t, and of another type than y; y may be x.
template <typename In, typename Out>
void scale(const In* x, float factor, Out* y, std::int64_t count);

// Clamps x to [-limit, limit]; a NaN stays one.
void clamp(float* x, float limit, std::int64_t count);

// Convert to the nearest bf16 values: packed, or widened to f32 again. The last one widens packed values.
void to_bf16(const float* x, BFloat16* y, std::int64_t count);
void round_to_bf16(const float* x, float* y, std::int64_t count);
void from_bf16(const BFloat16* x, float* y, std::int64_t count);

// Sums over rows, vectors and parts, each in one fixed order.

// Rows of one block are added in f32, blocks in f64, in one fixed order: the same bits with any number of
// threads, and an error that does not grow with the number of rows.
inline constexpr std::int64_t kSumBlock = 64;

// sums[c] = sum over rows of x[row * columns + c], times `factor`. In and Out are float or BFloat16; Out is float
// if In is.
template <typename In, typename Out>
void column_sums(const In* x, Out* sums, std::int64_t rows, std::int64_t columns, float factor = 1.0F);

// Adds in an order that depends only on `count`: the same bits with any number of threads.
double sum_of_squares(const float* x, std::int64_t count);

// Implements Kernels::clip_factor().
void clip_factor(float max_norm, GradientNorm& norm);

// sum = the parts, at most kMaxSummed vectors of `count` elements, added as one pairwise tree ((0+1)+(2+3))+...,
// an odd one out moving up; sum may be parts[0].
void sum_tree(std::span<float* const> parts, float* sum, std::int64_t count);

}  // namespace headrace::cpu
