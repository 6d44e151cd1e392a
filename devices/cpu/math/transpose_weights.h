// Convolution weights for the backward pass. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/base/bf16.h"

namespace headrace::cpu {

// Weights (outputs, kernel_height, kernel_width, channels) to (channels, kernel_height, kernel_width, outputs)
// with both kernel axes reversed: convolving dy with them gives the gradient of the input where the stride is 1.
struct KernelShape {
  std::int64_t outputs = 0, height = 0, width = 0, channels = 0;
};
template <typename T>  // float or BFloat16
void transpose_weights(const KernelShape& shape, const T* from, T* to);

}  // namespace headrace::cpu
