// Depthwise convolutions. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/math/onednn_conv_plan.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// Implement Kernels' functions of these names; T, float or BFloat16, is the type of activations and their
// gradients. The same bits with any number of threads. REQUIRES: shape.outputs is a multiple of shape.channels.
template <typename T>
void depthwise_forward(const ConvShape& shape, const T* x, const float* weights, const float* bias,
                       Activation activation, T* y);
template <typename T>
void depthwise_backward_data(const ConvShape& shape, const T* dy, const float* weights, T* dx);
template <typename T>
void depthwise_backward_weights(const ConvShape& shape, const T* x, const T* dy, float* dweights);

}  // namespace headrace::cpu
