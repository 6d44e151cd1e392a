// Functions of one element, over ranges of any length. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// y may be x. kNone copies.
void activate(Activation activation, const float* x, float* y, std::int64_t count);
// dx may be dy.
void activate_backward(Activation activation, const float* x, const float* dy, float* dx, std::int64_t count);
// sum may be a or b.
void add(const float* a, const float* b, float* sum, std::int64_t count);

// y = x * scale[c] + shift[c] over rows of `channels`. y may be x.
void scale_shift(const float* x, const float* scale, const float* shift, float* y, std::int64_t rows,
                 std::int64_t channels);
void scale_shift(const std::uint8_t* x, const float* scale, const float* shift, float* y, std::int64_t rows,
                 std::int64_t channels);

// bf16 values nearest to x: packed, and widened to f32 again. And packed ones widened.
void to_bf16(const float* x, std::uint16_t* y, std::int64_t count);
void round_to_bf16(const float* x, float* y, std::int64_t count);
void from_bf16(const std::uint16_t* x, float* y, std::int64_t count);

}  // namespace headrace::cpu
