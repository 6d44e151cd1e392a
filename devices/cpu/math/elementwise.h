// Functions of one element, over ranges of any length; In, Out and T are float or BFloat16. Private to the CPU
// backend.
#pragma once

#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

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

}  // namespace headrace::cpu
