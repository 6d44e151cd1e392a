// Second sets of weights beside those that are trained. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/base/bf16.h"

namespace headrace::cpu {

// As Kernels::average() and, for a share that is not 0, Kernels::look_ahead(); `rounded` may be null.
void average(const float* weights, float decay, float* average, std::int64_t count);
void look_ahead(float* parameters, BFloat16* rounded, float share, float* slow, std::int64_t count);

}  // namespace headrace::cpu
