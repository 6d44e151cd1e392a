// The gradient of a convolution's bias if the activation's input was not stored. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/math/onednn_conv_plan.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// T is float or BFloat16, the type of activations; W that of weights.
template <typename T, typename W>
struct ConvBiasOperands {
  const T* x;
  const W* weights;
  const float* bias;  // null: 0
  const T* dy;
};

// Implements Kernels::conv_bias_backward(); the same bits with any number of threads.
template <typename T, typename W>
void conv_bias_backward(const ConvShape& shape, const ConvBiasOperands<T, W>& operands, Activation activation,
                        float* dbias);

}  // namespace headrace::cpu
